package process

import (
	"bytes"
	"hash/maphash"
	"slices"
	"sync"
	"unsafe"
	"weak"
)

// Two hundred JVMs of a host may run the same libjvm, which has 4 MB of symbols and unwind information. Equal large
// pieces of files are kept once, as long as they are used. Only their content is compared: a file that claims to be
// another one (by its build id, for example) does not become the file of another process.

// sharedFrom is the size from which a piece is looked for among the others.
const sharedFrom = 32 << 10

// pieces are the pieces that are used.
type pieces struct {
	mu    sync.Mutex
	seed  maphash.Seed
	known map[uint64][]piece
	sweep int // pieces of which nobody has one any more are looked for when there are so many
}

// piece is one of them.
type piece struct {
	first weak.Pointer[byte]
	size  int
}

var shared = pieces{seed: maphash.MakeSeed(), known: map[uint64][]piece{}, sweep: 64}

// one returns the piece that is equal to b: an older one, or b itself. From now on no code may write into it.
func (p *pieces) one(b []byte) []byte {
	if len(b) < sharedFrom {
		return b
	}
	hash := maphash.Bytes(p.seed, b)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.known[hash] {
		if first := k.first.Value(); first != nil && k.size == len(b) {
			if old := unsafe.Slice(first, k.size); bytes.Equal(old, b) {
				return old
			}
		}
	}
	if len(p.known) >= p.sweep {
		p.forget()
	}
	p.known[hash] = append(alive(p.known[hash]), piece{weak.Make(unsafe.SliceData(b)), len(b)})
	return b
}

// alive returns the pieces that are still used.
func alive(all []piece) []piece {
	return slices.DeleteFunc(all, func(k piece) bool { return k.first.Value() == nil })
}

// forget removes the pieces that are no longer used.
func (p *pieces) forget() {
	for hash, all := range p.known {
		if p.known[hash] = alive(all); len(p.known[hash]) == 0 {
			delete(p.known, hash)
		}
	}
	p.sweep = max(2*len(p.known), 64)
}
