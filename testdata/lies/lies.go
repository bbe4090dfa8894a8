// Package lies makes memory that no honest process has, for tests of what reads a process: words that contradict each
// other, and words where nothing is.
package lies

import "encoding/binary"

// Invent fills p with words for addr that are chosen from pool: always the same at the same address.
func Invent(pool []uint64, addr uint64, p []byte) {
	var b [8]byte
	for i := 0; i < len(p); {
		at := addr + uint64(i)
		v := pool[(at>>3)*0x9e3779b97f4a7c15>>32%uint64(len(pool))]
		binary.LittleEndian.PutUint64(b[:], v)
		i += copy(p[i:], b[at&7:])
	}
}

// Tell overwrites what was read at addr with those words that lie in it, by their address.
func Tell(words map[uint64]uint64, addr uint64, p []byte) {
	for at, v := range words {
		if at+8 > addr && at < addr+uint64(len(p)) {
			tell(at, v, addr, p)
		}
	}
}

// tell overwrites what was read at addr with a word that lies in it.
func tell(at, v, addr uint64, p []byte) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	if at >= addr {
		copy(p[at-addr:], b[:])
	} else {
		copy(p, b[addr-at:])
	}
}
