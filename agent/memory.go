//go:build linux

package agent

import (
	"fmt"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// memory limits the memory of goprof, however many JVMs there are. The data that goprof keeps of a JVM (names, debug
// information, threads) grow with that JVM, and can only be dropped as a whole. If too much memory is in use, goprof
// detaches from the JVM that uses the least CPU time. For some time it then attaches only to as many JVMs as fit.
//
// The Go runtime keeps garbage within the same bound (debug.SetMemoryLimit).
type memory struct {
	after uint64 // the collection after which the memory of released or ended JVMs is no longer counted
}

const (
	// mostLive is the part of the limit that may be in use after a garbage collection. The rest is for garbage and the
	// Go runtime.
	mostLive = 0.6
	// leftFor is how long goprof stays detached from a JVM after memory was short.
	leftFor = 5 * time.Minute
	// growth is the garbage that may pile up between two collections. A collection costs tens of milliseconds of CPU
	// time, mostly in waiting for the thread that makes visits (ptrace.LeaveInPeace). growth is at most growthPart of
	// the limit.
	growth, growthPart = 16 << 20, 0.1
	// leastGrowth and mostGrowth limit the same, in percent of the memory in use. leastGrowth overrides the other
	// limits.
	leastGrowth, mostGrowth = 30, 400
)

// hasRoom reports whether one more JVM of average size fits beside n JVMs. One JVM always fits: without JVMs, the
// memory in use belongs to JVMs that have ended. It is freed at the next garbage collection, which may be minutes away
// in an idle agent.
func (a *Agent) hasRoom(n int) bool {
	if a.settings.MaxMemory == 0 || n == 0 {
		return true
	}
	live, _ := a.world.Memory()
	return float64(live)*(1+1/float64(n)) <= mostLive*float64(a.settings.MaxMemory)
}

// holdMemory detaches from a JVM if too much memory is in use.
func (a *Agent) holdMemory(now time.Time) {
	live, collections := a.world.Memory()
	bound := a.settings.MaxMemory
	a.world.LetGrow(live, a.growth())
	if bound == 0 || float64(live) <= mostLive*float64(bound) || collections < a.memory.after {
		return
	}
	if a.others.letGo(now) {
		a.memory.after = collections + 2
		a.tell(now, fmt.Sprintf("processes that are no JVM are not read for %v: %d MB are in use, and max-memory is %d MB",
			leftFor, live>>20, bound>>20))
		return
	}
	g := a.leastBusy(now)
	if g == nil { // the memory in use belongs to JVMs that have ended
		a.memory.after = collections + 1
		return
	}
	a.memory.after = collections + 2 // one collection may be under way
	a.release(g)
	g.leave = now.Add(leftFor)
	a.metrics.evicted.Add(1)
	a.tell(now, fmt.Sprintf("%s is let go for %v: %d MB are in use, and max-memory is %d MB", a.called(g), leftFor,
		live>>20, bound>>20))
}

// growth returns the garbage that may pile up between two collections.
func (a *Agent) growth() int64 {
	if bound := a.settings.MaxMemory; bound != 0 {
		return min(growth, int64(growthPart*float64(bound)))
	}
	return growth
}

// leastBusy returns the recorded JVM that has lately used the least CPU time, or nil.
func (a *Agent) leastBusy(now time.Time) (least *guest) {
	use := func(g *guest) float64 {
		return float64(g.read-g.atWindow) / float64(max(now.Sub(g.window), time.Second))
	}
	for _, g := range a.guests {
		if g.state == recorded && (least == nil || use(g) < use(least)) {
			least = g
		}
	}
	return least
}

// LetGrow sets how much the heap may grow. It changes the runtime's percentage only if that differs.
func (h *ThisHost) LetGrow(live, growth int64) {
	percent := growthPercent(live, growth)
	if percent > h.growth*5/4 || percent < h.growth*4/5 {
		h.growth = percent
		debug.SetGCPercent(int(percent))
	}
}

func growthPercent(live, growth int64) int64 {
	return min(max(100*growth/max(live, 1), leastGrowth), mostGrowth)
}

// Memory returns the memory in use after the last garbage collection, and the number of collections.
func (h *ThisHost) Memory() (live int64, collections uint64) {
	read := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(read)
	return int64(read[0].Value.Uint64()), read[1].Value.Uint64()
}
