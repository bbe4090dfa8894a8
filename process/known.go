package process

import "sync/atomic"

// KnownCode holds for which generated code of a process goprof has a note already (vmstructs/sightings.go).
//
// One goroutine adds to it. An OS thread that Go does not manage may read it at the same time
// (sampler/perf/checker.go). So it holds no pointers, and may lie outside of Go's heap. It needs memory only for
// addresses with code.
type KnownCode struct {
	begin, size           uint64 // of all generated code
	fixedBegin, fixedSize uint64 // of the part that never changes and needs no note
	bits                  [knownPlaces / 64]atomic.Uint64
}

const (
	// knownShift: a place has 64 bytes. Pieces of code begin at such places.
	knownShift = 6
	// knownPlaces is how many places there can be, in 512 MB of code. Code beyond that is always new.
	knownPlaces = 8 << 20
)

// Span says where the code lies, and which part of it never changes. Nothing is known then.
func (k *KnownCode) Span(begin, end, fixedBegin, fixedEnd uint64) {
	for i := range k.bits[:min(k.size>>knownShift, knownPlaces-1)/64+1] {
		if k.bits[i].Load() != 0 { // memory that was never written stays so
			k.bits[i].Store(0)
		}
	}
	k.begin, k.size, k.fixedBegin, k.fixedSize = begin, end-begin, fixedBegin, fixedEnd-fixedBegin
}

// IsNew reports whether a word may be the address of code that is not known.
//
//go:nosplit
func (k *KnownCode) IsNew(pc uint64) bool {
	at := pc - k.begin
	return at < k.size && pc-k.fixedBegin >= k.fixedSize &&
		(at>>knownShift >= knownPlaces || k.bits[at>>knownShift/64%(knownPlaces/64)].Load()>>(at>>knownShift%64)&1 == 0)
}

// Add makes the code at a pc known.
func (k *KnownCode) Add(pc uint64) {
	if place := (pc - k.begin) >> knownShift; pc-k.begin < k.size && place < knownPlaces {
		k.bits[place/64].Or(1 << (place % 64))
	}
}

// AddAll makes all code from one address up to another known.
func (k *KnownCode) AddAll(from, to uint64) {
	for ; from < to; from += 1 << knownShift {
		k.Add(from)
	}
}

// Forget makes the code at a pc unknown again.
func (k *KnownCode) Forget(pc uint64) {
	if place := (pc - k.begin) >> knownShift; pc-k.begin < k.size && place < knownPlaces {
		k.bits[place/64].And(^uint64(1 << (place % 64)))
	}
}
