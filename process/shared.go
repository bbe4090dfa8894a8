package process

import (
	"bytes"
	"hash/maphash"
	"slices"
	"sync"
	"unsafe"
	"weak"
)

// Two hundred JVMs of a host run the same libjvm, whose symbols and unwind information are 4 MB. Large pieces of files
// that are equal are kept once, for as long as somebody has one. What decides is the content: a file that only claims
// to be the same one (by its build id, say) cannot become another process's.

// sharedFrom is the size from which a piece is worth being looked for.
const sharedFrom = 32 << 10

// pieces are those that somebody has.
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

// one returns the piece that is equal to b: an older one, or b. Nobody may write into it from now on.
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

// alive are those that somebody has.
func alive(all []piece) []piece {
	return slices.DeleteFunc(all, func(k piece) bool { return k.first.Value() == nil })
}

// forget removes those that nobody has.
func (p *pieces) forget() {
	for hash, all := range p.known {
		if p.known[hash] = alive(all); len(p.known[hash]) == 0 {
			delete(p.known, hash)
		}
	}
	p.sweep = max(2*len(p.known), 64)
}
