package lies

import (
	"encoding/binary"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"

	"goprof/process"
)

// ErrEndless is what a Liar panics with that is read without end.
var ErrEndless = errors.New("it reads without end")

// Liar is a process that stands still, with other words in some places.
type Liar struct {
	process.Target
	words  map[uint64]uint64 // by address, a multiple of 8
	places []uint64          // of words, sorted
	// Listen has the Liar note where it is read.
	Listen bool
	Asked  []uint64
	// Fickle: it lies only to Read, and not to ReadMany.
	Fickle bool
	Reads  int
	Most   int // of Reads
}

// Set has other words in some places from now on. nil: none.
func (l *Liar) Set(words map[uint64]uint64) {
	l.words, l.places, l.Reads = words, slices.Sorted(maps.Keys(words)), 0
}

// Read reads the truth, but for the words that were set.
func (l *Liar) Read(addr uint64, p []byte) error {
	err := l.truth(addr, p)
	for i, _ := slices.BinarySearch(l.places, addr&^7); i < len(l.places) && l.places[i] < addr+uint64(len(p)); i++ {
		tell(l.places[i], l.words[l.places[i]], addr, p)
	}
	return err
}

func (l *Liar) truth(addr uint64, p []byte) error {
	if l.Reads++; l.Reads > l.Most {
		panic(ErrEndless)
	}
	if l.Listen {
		for at := addr &^ 7; at < addr+min(uint64(len(p)), 256); at += 8 {
			l.Asked = append(l.Asked, at)
		}
	}
	return l.Target.Read(addr, p)
}

// ReadMany is Read for several pieces.
func (l *Liar) ReadMany(rs []process.Range) {
	for i := range rs {
		if l.Fickle {
			rs[i].OK = l.truth(rs[i].Addr, rs[i].Buf) == nil
		} else {
			rs[i].OK = l.Read(rs[i].Addr, rs[i].Buf) == nil
		}
	}
}

// Lie sets other lies, in some of these places: zeros, numbers at random, and words of other places, which make lists
// go round in circles.
func (l *Liar) Lie(rnd *rand.Rand, places []uint64) {
	words := map[uint64]uint64{}
	for range 1 + rnd.IntN(200) {
		at, v := places[rnd.IntN(len(places))], uint64(0)
		switch rnd.IntN(4) {
		case 0:
		case 1:
			v = rnd.Uint64() >> rnd.IntN(64)
		default:
			var b [8]byte
			l.Target.Read(places[rnd.IntN(len(places))], b[:])
			v = binary.LittleEndian.Uint64(b[:])
		}
		words[at] = v
	}
	l.Set(words)
}
