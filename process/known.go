package process

import "sync/atomic"

// KnownCode is the set of generated code of a process that goprof has already noted (vmstructs/sightings.go).
//
// One goroutine adds code. An OS thread that Go does not manage may read the set at the same time
// (sampler/perf/checker.go). So a KnownCode holds no pointers, and can be outside of Go's heap. It uses memory only for
// addresses with code.
type KnownCode struct {
	begin, size           uint64 // of all generated code
	fixedBegin, fixedSize uint64 // of the part that never changes and is not noted
	bits                  [knownPlaces / 64]atomic.Uint64
}

const (
	// knownShift is the logarithm of the size of a place, 64 bytes. Pieces of code begin at multiples of this size.
	knownShift = 6
	// knownPlaces is the largest number of places, for 512 MB of code. Code beyond them always counts as new.
	knownPlaces = 8 << 20
)

// Span sets the bounds of the code, and of the part that never changes. Afterwards the set is empty.
func (k *KnownCode) Span(begin, end, fixedBegin, fixedEnd uint64) {
	for i := range k.bits[:min(k.size>>knownShift, knownPlaces-1)/64+1] {
		if k.bits[i].Load() != 0 { // do not write to memory that was never written
			k.bits[i].Store(0)
		}
	}
	k.begin, k.size, k.fixedBegin, k.fixedSize = begin, end-begin, fixedBegin, fixedEnd-fixedBegin
}

// IsNew reports whether a word may be the address of code that is not in the set.
//
//go:nosplit
func (k *KnownCode) IsNew(pc uint64) bool {
	at := pc - k.begin
	return at < k.size && pc-k.fixedBegin >= k.fixedSize &&
		(at>>knownShift >= knownPlaces || k.bits[at>>knownShift/64%(knownPlaces/64)].Load()>>(at>>knownShift%64)&1 == 0)
}

func (k *KnownCode) Add(pc uint64) {
	if place := (pc - k.begin) >> knownShift; pc-k.begin < k.size && place < knownPlaces {
		k.bits[place/64].Or(1 << (place % 64))
	}
}

func (k *KnownCode) AddAll(from, to uint64) {
	for ; from < to; from += 1 << knownShift {
		k.Add(from)
	}
}

func (k *KnownCode) Forget(pc uint64) {
	if place := (pc - k.begin) >> knownShift; pc-k.begin < k.size && place < knownPlaces {
		k.bits[place/64].And(^uint64(1 << (place % 64)))
	}
}
