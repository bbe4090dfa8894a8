//go:build linux

package session

import (
	"maps"
	"sync"

	"goprof/profile"
	"goprof/sampler"
	wallclock "goprof/sampler/wall"
	"goprof/vmstructs"
)

// A recording of TTSPMode shows which threads a safepoint waits for. Package sampler/wall takes the looks. It reads the
// VM's safepoints with this file's functions.

// safepoints reads the VM on the sampling thread, in a recording of TTSPMode.
type safepoints struct {
	reader *vmstructs.Safepoints
	ahead  int64 // how far the process's clock is ahead of goprof's
	// strangers has room for one message: a thread that is not in the directory is late.
	strangers chan struct{}

	mu         sync.Mutex
	operations map[string]int64
}

// maxOperations bounds how many names of VM operations are kept. HotSpot has some 100.
const maxOperations = 256

// WatchSafepoints prepares a recording of TTSPMode. It fails with vmstructs.ErrNoSafepoints if the JVM does not show
// its safepoints, and with process.ErrSilent if its memory does not answer.
func (s *Session) WatchSafepoints() (err error) {
	if s.safepoints != nil {
		return nil
	}
	reader, err := Ask(s, s.VM.NewSafepoints)
	if err == nil {
		s.safepoints = &safepoints{reader: reader.ReadFrom(s.memory), ahead: int64(s.timeOffset),
			strangers: make(chan struct{}, 1)}
	}
	return err
}

// gather returns the functions with which the sampler reads safepoints during a recording.
func (sp *safepoints) gather() *wallclock.GatherOptions {
	sp.operations = map[string]int64{}
	return &wallclock.GatherOptions{Read: sp.read, Missing: sp.missing, Unknown: sp.unknown, Seen: sp.seen}
}

func (sp *safepoints) read() (wallclock.Gathering, bool) {
	g, ok := sp.reader.Read()
	if g.Began != 0 {
		g.Began -= sp.ahead
	}
	return wallclock.Gathering(g), ok
}

func (sp *safepoints) missing(into []uint64) ([]uint64, bool) { return sp.reader.Missing(into) }

// unknown asks the session to read the list of threads, because a thread that is not in the list is late.
func (sp *safepoints) unknown() {
	select {
	case sp.strangers <- struct{}{}:
	default:
	}
}

func (sp *safepoints) seen() {
	name := sp.reader.Operation()
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if _, known := sp.operations[name]; name != "" && (known || len(sp.operations) < maxOperations) {
		sp.operations[name]++
	}
}

func (sp *safepoints) account(c *sampler.GatherCounts) *profile.Safepoints {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	return &profile.Safepoints{Count: c.Count, Took: c.Took, Exact: c.Counted, Seen: c.Seen, SeenFor: c.SeenFor,
		Longest: c.Longest, Unknown: c.Unknown, Operations: maps.Clone(sp.operations)}
}

// WithoutSafepointSymbols reads safepoints only from the JVM's counters, as if libjvm.so had no symbols. It is for
// tests, between WatchSafepoints and Record.
func (s *Session) WithoutSafepointSymbols() { s.safepoints.reader.OnlyCounters() }
