//go:build linux

package perf

import (
	"math/rand/v2"
	"slices"
	"sort"
	"sync/atomic"
	"time"

	"goprof/arch/cpus"
	"goprof/sampler/cpuset"
	"goprof/sampler/ptrace"
	"goprof/sampler/ring"
)

// Host samples whatever runs on the CPUs of this machine, with one event for each CPU. A sample has the calls to which
// frame pointers lead, and no memory. Nothing wakes goprof up: its caller reads the rings now and then. Its methods
// belong to one goroutine.
type Host struct {
	rings  *perfRings
	wide   *wideEvents
	asked  cpuset.Asked
	online []int
	seen   []ring.Chain
	lost   int64

	unsampled atomic.Int64
}

// hostRing has room for some seconds at a low rate, and for the processes that begin and end meanwhile.
const hostRing = ring.Least

// OpenHost begins to take samples. It fails where goprof does not see the numbers of all processes, and where the
// kernel does not permit events of CPUs.
func OpenHost(interval time.Duration) (*Host, error) {
	if err := mayWatch(0); err != nil {
		return nil, err
	}
	h := &Host{asked: cpuset.AskedNow(), online: cpuset.Online()}
	var err error
	if h.rings, err = openPerfRings(slices.Clone(h.online), ring.Share(len(h.online), hostRing), nil, nil); err != nil {
		return nil, err
	}
	h.wide = &wideEvents{rings: h.rings, cpu: cpus.Here(), kernel: ring.InKernel, chains: true, interval: int64(interval),
		rng: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
	if err := h.wide.open(); err != nil {
		h.rings.close()
		return nil, err
	}
	return h, nil
}

// Close ends the samples.
func (h *Host) Close() {
	h.wide.closeEvents()
	h.rings.close()
}

// SetInterval sets the time between two samples of a CPU from now on.
func (h *Host) SetInterval(d time.Duration) {
	if interval := int64(d); interval != h.wide.interval {
		h.wide.interval = interval
		h.wide.changePeriods(ptrace.Monotonic())
	}
}

// Read returns what has happened since the last Read, in the order of time, by the wall clock. lost is how many records
// are missing. The result is valid until the next Read.
func (h *Host) Read() (seen []ring.Chain, lost int64) {
	now := ptrace.Monotonic()
	ahead := time.Now().UnixNano() - now
	h.wide.redraw(now)
	h.followCPUs(now)
	clear(h.seen)
	h.seen, h.lost = h.seen[:0], 0
	h.rings.steady.Drain(h)
	sort.SliceStable(h.seen, func(i, j int) bool { return h.seen[i].When < h.seen[j].When })
	for i := range h.seen {
		h.seen[i].When += ahead
	}
	return h.seen, h.lost
}

// followCPUs opens the events again if a CPU has come that was not there, or was away.
func (h *Host) followCPUs(now int64) {
	if !h.asked.IsDue(now) {
		return
	}
	anew, before := h.asked.MissedMuch(now), h.online
	h.online = cpuset.Online()
	if !anew && !cpuset.HaveCome(before, h.online) && h.wide.failed == nil {
		return
	}
	fresh := h.rings.without(h.online)
	unsampled := 0
	switch {
	case !h.rings.takeIn(fresh):
		unsampled = len(fresh)
	case h.wide.reopen() != nil:
		unsampled = len(h.online)
	}
	if unsampled > 0 {
		h.online = before // the next time, perhaps
	}
	h.unsampled.Store(int64(unsampled))
}

// Unsampled is how many CPUs are on and have no samples, from any goroutine: the kernel had no room for their events,
// and goprof tries again.
func (h *Host) Unsampled() int { return int(h.unsampled.Load()) }

// Record is ring.Taker's.
func (h *Host) Record(b ring.Bytes, rec ring.Record) {
	if c, ok := b.ParseEventChain(rec); !ok {
		h.lost++
	} else if c.Kind == ring.KindSample || c.Kind == ring.KindComm || c.PID == c.TID {
		h.seen = append(h.seen, c) // no thread that begins or ends
	}
}

// Lose is ring.Taker's.
func (h *Host) Lose(_ ptrace.Outcome, n int64) { h.lost += n }
