//go:build linux

package session

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"goprof/process"
	"goprof/sampler/events"
)

// presetPairs are functions that allocate memory, and functions that free it. A library may lack some of them, but not
// the first of each.
type presetPairs struct {
	begins []presetBegin
	frees  []string
	length int // the argument of frees with the freed length
}

type presetBegin struct {
	symbol string
	size   int  // the argument, counted from 1
	times  int  // the argument by which size is multiplied
	out    int  // the argument that says where the address is written
	old    int  // the argument with a block that is freed
	clears bool // it may end in a jump to memset
	access int  // the argument that is 0 if the memory may not be accessed at all
}

// mallocPairs are the functions of malloc. reallocarray calls realloc. The operators of C++ are in libstdc++, where
// they call malloc, or in the library that replaces malloc.
var mallocPairs = &presetPairs{
	begins: []presetBegin{{symbol: "malloc", size: 1}, {symbol: "calloc", size: 1, times: 2, clears: true},
		{symbol: "realloc", size: 2, old: 1}, {symbol: "posix_memalign", size: 3, out: 1},
		{symbol: "aligned_alloc", size: 2}, {symbol: "memalign", size: 2}, {symbol: "valloc", size: 1},
		{symbol: "pvalloc", size: 1}, {symbol: "_Znwm", size: 1}, {symbol: "_Znam", size: 1},
		{symbol: "_ZnwmRKSt9nothrow_t", size: 1}, {symbol: "_ZnamRKSt9nothrow_t", size: 1},
		{symbol: "_ZnwmSt11align_val_t", size: 1}, {symbol: "_ZnamSt11align_val_t", size: 1}},
	frees: []string{"free", "cfree", "_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdaPvm", "_ZdlPvSt11align_val_t",
		"_ZdaPvSt11align_val_t", "_ZdlPvmSt11align_val_t", "_ZdaPvmSt11align_val_t", "_ZdlPvRKSt9nothrow_t",
		"_ZdaPvRKSt9nothrow_t"},
}

// leakWays: a malloc library that is loaded beside the C library replaces its malloc. So such libraries come first.
var leakWays = []presetWay{{in: "libjemalloc", pairs: mallocPairs}, {in: "libtcmalloc", pairs: mallocPairs},
	{in: "libtcmalloc_minimal", pairs: mallocPairs}, {in: "libtcmalloc_and_profiler", pairs: mallocPairs},
	{in: "libtcmalloc_debug", pairs: mallocPairs}, {in: "libtcmalloc_minimal_debug", pairs: mallocPairs},
	{in: "libmimalloc", pairs: mallocPairs}, {in: "ld-musl", pairs: mallocPairs}, {in: libc, pairs: mallocPairs}}

// mapPairs are the functions that map memory and files.
var mapPairs = &presetPairs{
	begins: []presetBegin{{symbol: "mmap", size: 2, access: 3}, {symbol: "mremap", size: 3, old: 1}},
	frees:  []string{"munmap"},
	length: 2,
}

var mapLeakWays = []presetWay{{in: "ld-musl", pairs: mapPairs}, {in: libc, pairs: mapPairs}}

// tryPairs finds the beginnings and the ends of the functions that allocate memory.
func (s *Session) tryPairs(plan *EventPlan, way *presetWay, every uint64) (err error) {
	pairing := &events.Pairing{Kept: events.NewKept(), Length: way.pairs.length}
	e := events.Event{Name: plan.Name, Interval: every, Pairing: pairing}
	defer func() { plan.list, plan.parts = []events.Event{e}, []eventPart{{of: plan.kind()}} }()
	for i := range way.pairs.begins {
		b := &way.pairs.begins[i]
		found, err := s.Process.Functions(way.in, b.symbol)
		switch {
		case errors.Is(err, process.ErrNoSymbol) && i > 0:
			continue
		case err != nil:
			return err
		}
		for _, f := range found {
			if err := s.addBegin(&e, b, f); err != nil {
				return err
			}
		}
	}
	for i, symbol := range way.pairs.frees {
		found, err := s.Process.Functions(way.in, symbol)
		switch {
		case errors.Is(err, process.ErrNoSymbol) && i > 0:
			continue
		case err != nil:
			return err
		}
		for i := range found {
			found[i] = s.Process.Enter(found[i])
		}
		if err := s.addProbes(&e, &pairing.Frees, found); err != nil {
			return err
		}
	}
	return events.TryProbes()
}

// addBegin adds a function that allocates memory, with its ends, unless it was already added under another name.
func (s *Session) addBegin(e *events.Event, b *presetBegin, f process.Function) error {
	p := e.Pairing
	returns, leaves, err := s.Process.Ends(f)
	if err != nil {
		return err
	}
	enter := s.Process.Enter(f)
	if slices.ContainsFunc(p.Begins, func(o events.Begin) bool { return o.Offset == enter.Offset }) {
		return nil
	}
	file, err := s.fileOf(e, f)
	if err != nil {
		return err
	}
	p.Begins = append(p.Begins, events.Begin{Probe: events.Probe{File: file, Offset: enter.Offset}, Size: b.size,
		Times: b.times, Out: b.out, Old: b.old, Access: b.access})
	if b.clears {
		if err := s.addProbes(e, &p.Clearing, leaves); err != nil {
			return err
		}
	}
	return s.addProbes(e, &e.Probes, returns)
}

const maxPairProbes = 128

// addProbes adds probes at those places that have none yet.
func (s *Session) addProbes(e *events.Event, to *[]events.Probe, places []process.Function) error {
	for _, f := range places {
		if slices.ContainsFunc(*to, func(o events.Probe) bool { return o.Offset == f.Offset }) {
			continue
		}
		if len(*to) >= maxPairProbes {
			return fmt.Errorf("%w: more than %d places", process.ErrTooLong, maxPairProbes)
		}
		file, err := s.fileOf(e, f)
		if err != nil {
			return err
		}
		*to = append(*to, events.Probe{File: file, Offset: f.Offset})
	}
	return nil
}

// fileOf opens the file of a place. All places of an event are in one file.
func (s *Session) fileOf(e *events.Event, f process.Function) (*os.File, error) {
	if probes := e.AllProbes(); len(probes) > 0 {
		return probes[0].File, nil
	}
	return s.Process.OpenFunction(f)
}
