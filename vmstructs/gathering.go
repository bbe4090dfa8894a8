package vmstructs

import (
	"encoding/binary"
	"errors"
	"time"

	"goprof/process"
)

// Safepoints watches how the VM stops all of its threads. One goroutine may use a Safepoints while another uses the VM
// from which it was made. There are two sources, and either is sufficient:
//   - SafepointSynchronize::_state, and since 13 SafepointTracing::_last_safepoint_begin_time_ns: variables that only
//     .symtab names (11 to 27 of Debian and Temurin; not 8 of Debian, not a stripped libjvm.so).
//   - Counters for jstat, in all releases, unless -XX:-UsePerfData is set. sun.rt.safepoints grows by one when the VM
//     asks its threads to stop (services/runtimeService.cpp, record_safepoint_begin). When the last thread has stopped,
//     sun.rt.safepointSyncTime grows by the time that this took (record_safepoint_synchronized).
type Safepoints struct {
	health       *Health
	state, begun uint64 // addresses; 0: not known
	count, took  uint64
	tick         float64 // nanoseconds

	raw    [5][8]byte
	ranges []process.Range

	// Without _state: the counters at a time when the VM waited for no thread.
	settled            bool
	quietCount, quiets uint64
}

// Gathering shows how far the VM is with stopping its threads.
type Gathering struct {
	Under   bool          // the VM waits for threads
	Began   int64         // when the VM last asked its threads, by the process's CLOCK_MONOTONIC; 0: not known
	Counted bool          // Count and Took are known
	Count   uint64        // how often the VM has asked its threads
	Took    time.Duration // the total time until all threads had stopped
}

var ErrNoSafepoints = errors.New("vmstructs: neither libjvm.so's symbols nor the JVM's counters report safepoints")

// The names of the counters in services/runtimeService.cpp.
const (
	safepointCount = "sun.rt.safepoints"
	safepointSync  = "sun.rt.safepointSyncTime"
	counterTicks   = "sun.os.hrt.frequency"
)

// NewSafepoints finds the sources. It takes some time, because it looks up symbols.
func (vm *VM) NewSafepoints() (*Safepoints, error) {
	s := &Safepoints{health: vm.NewHealth()}
	if s.state = s.health.symbols.safepoint; s.state != 0 {
		s.begun = vm.global("_ZN16SafepointTracing29_last_safepoint_begin_time_nsE")
	}
	s.findCounters()
	if s.state == 0 && s.count == 0 {
		return nil, ErrNoSafepoints
	}
	return s, nil
}

// findCounters finds the addresses of the counters. Entries never move.
func (s *Safepoints) findCounters() {
	c, ok := s.health.Counters()
	if !ok {
		return
	}
	hz, ok := c.Long(counterTicks)
	start, count, took := c.area.start, c.area.at[safepointCount], c.area.at[safepointSync]
	if !ok || hz <= 0 || count.at == 0 || took.at == 0 || count.length != 0 || took.length != 0 {
		return
	}
	s.count, s.took, s.tick = start+uint64(count.at), start+uint64(took.at), 1e9/float64(hz)
}

// ReadFrom sets another Target of the same process, from which memory is read from now on.
func (s *Safepoints) ReadFrom(t process.Target) *Safepoints {
	s.health.ReadFrom(t)
	return s
}

// maxGathered bounds the total time of all safepoints.
const maxGathered = 1 << 62

// Read returns how far the VM is. It reads the state before and after the other data. ok is false if the state cannot
// be read, or if it changes each time.
func (s *Safepoints) Read() (g Gathering, ok bool) {
	const tries = 4
	for range tries {
		if !s.readAll() {
			return g, false
		}
		before, after := binary.LittleEndian.Uint32(s.raw[0][:]), binary.LittleEndian.Uint32(s.raw[4][:])
		if before != after {
			continue
		}
		g = Gathering{Began: int64(word(s.raw[3][:])), Under: SafepointState(before) == Synchronizing}
		if s.count != 0 {
			took := float64(word(s.raw[2][:])) * s.tick
			g.Count, g.Counted = word(s.raw[1][:]), took >= 0 && took < maxGathered
			if g.Counted {
				g.Took = time.Duration(took)
			}
		}
		if s.state == 0 {
			if !g.Counted {
				return g, false
			}
			g.Under = s.underByCounters(&g)
		}
		return g, true
	}
	return g, false
}

// readAll reads everything with one call, in this order.
func (s *Safepoints) readAll() bool {
	s.ranges = s.ranges[:0]
	for i, at := range [...]uint64{s.state, s.count, s.took, s.begun, s.state} {
		clear(s.raw[i][:])
		size := 8
		if at == s.state {
			size = 4
		}
		if at != 0 {
			s.ranges = append(s.ranges, process.Range{Addr: at, Buf: s.raw[i][:size]})
		}
	}
	s.health.vm.t.ReadMany(s.ranges)
	for i := range s.ranges {
		if !s.ranges[i].OK {
			return false
		}
	}
	return true
}

// underByCounters reports whether the VM waits for threads, by the counters: it has asked them to stop, but has not
// added the time yet. The first reading cannot show that. If several safepoints began between two readings, the last
// one may still be under way. Then underByCounters returns false until the counters change.
func (s *Safepoints) underByCounters(g *Gathering) bool {
	if !s.settled || uint64(g.Took) != s.quiets {
		s.settled, s.quietCount, s.quiets = true, g.Count, uint64(g.Took)
	}
	return g.Count > s.quietCount
}

// Missing appends the threads that have not stopped yet, by the addresses of their Sides (VM.Side). ok is false if the
// VM waits for no thread, if the wait ended before the list was read, or if the threads cannot be listed.
func (s *Safepoints) Missing(into []uint64) (missing []uint64, ok bool) {
	before, ok := s.Read()
	if !ok || !before.Under {
		return into, false
	}
	threads, err := s.health.Threads()
	if err != nil {
		return into, false
	}
	after, ok := s.Read()
	if !ok || !after.Under || after.Count != before.Count || after.Began != before.Began {
		return into, false
	}
	side, _ := s.health.vm.Side()
	for i := range threads {
		if threads[i].State.Moves() && threads[i].NSTID != 0 {
			into = append(into, threads[i].Addr+side)
		}
	}
	return into, true
}

// Operation returns the name of the operation that the VM executes, empty if not known.
func (s *Safepoints) Operation() string { return s.health.Operation().Or("") }

// OnlyCounters makes a test use only the counters.
func (s *Safepoints) OnlyCounters() { s.state, s.begun = 0, 0 }
