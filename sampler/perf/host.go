//go:build linux

package perf

import (
	"math/rand/v2"
	"slices"
	"sort"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"goprof/arch/cpus"
	"goprof/sampler/cpuset"
	"goprof/sampler/ptrace"
	"goprof/sampler/ring"
)

// Host samples all that runs on the CPUs of this machine, with one event for each CPU. A sample has the stack that
// frame pointers give, and no memory. Samples do not wake goprof: the caller reads the rings now and then. Its methods
// belong to one goroutine.
//
// Records about processes have rings of their own. So a program that renames its threads all the time fills only these
// rings, within a fraction of a second, and no sample is lost.
type Host struct {
	samples, tasks hostEvents
	asked          cpuset.Asked
	online         []int
	seen           []ring.Chain
	lost           *int64 // lost records of the rings that are being read

	blind     bool // the events of processes were opened again, and Read has not reported it yet
	unsampled atomic.Int64
}

type hostEvents struct {
	rings *perfRings
	wide  *wideEvents
}

// hostRing has room for the samples of some seconds at a low rate, and for the processes that begin and end in that
// time.
const hostRing = ring.Least

// OpenHost begins to take samples. It fails if goprof does not see the numbers of all processes, or if the kernel does
// not permit events of CPUs.
func OpenHost(interval time.Duration) (*Host, error) {
	if err := mayWatch(0); err != nil {
		return nil, err
	}
	h := &Host{asked: cpuset.AskedNow(), online: cpuset.Online()}
	if err := h.tasks.open(h.online, ring.TaskAttr(), interval); err != nil {
		return nil, err
	}
	if err := h.samples.open(h.online, ring.ChainAttr(), interval); err != nil {
		h.tasks.close()
		return nil, err
	}
	return h, nil
}

func (e *hostEvents) open(online []int, attr unix.PerfEventAttr, interval time.Duration) (err error) {
	if e.rings, err = openPerfRings(slices.Clone(online), ring.Share(len(online), hostRing), nil, nil); err != nil {
		return err
	}
	e.wide = &wideEvents{rings: e.rings, cpu: cpus.Here(), kernel: ring.InKernel, attr: &attr, interval: int64(interval),
		rng: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
	if err = e.wide.open(); err != nil {
		e.rings.close()
	}
	return err
}

// reopen opens all events again. It returns the number of CPUs on which this failed.
func (e *hostEvents) reopen(online []int) int {
	fresh := e.rings.without(online)
	switch {
	case !e.rings.takeIn(fresh):
		return len(fresh)
	case e.wide.reopen() != nil:
		return len(online)
	}
	return 0
}

func (e *hostEvents) close() {
	e.wide.closeEvents()
	e.rings.close()
}

// Close ends the samples.
func (h *Host) Close() {
	h.samples.close()
	h.tasks.close()
}

// SetInterval sets the time between two samples of a CPU from now on.
func (h *Host) SetInterval(d time.Duration) {
	if w := h.samples.wide; w.interval != int64(d) {
		w.interval = int64(d)
		w.changePeriods(ptrace.Monotonic())
	}
}

// Read returns the records since the last Read, ordered by time, with times of the wall clock. samples and tasks are
// how many records are missing. The result is valid until the next Read.
func (h *Host) Read() (seen []ring.Chain, samples, tasks int64) {
	now := ptrace.Monotonic()
	ahead := time.Now().UnixNano() - now
	h.samples.wide.redraw(now)
	h.followCPUs(now)
	clear(h.seen)
	h.seen, h.lost = h.seen[:0], &samples
	h.samples.rings.steady.Drain(h)
	h.lost = &tasks // tasks are read later, so that the process of each sample is known
	h.tasks.rings.steady.Drain(h)
	if h.blind { // there was a gap between the old events and the new ones
		tasks, h.blind = tasks+1, false
	}
	sort.SliceStable(h.seen, func(i, j int) bool { return h.seen[i].When < h.seen[j].When })
	for i := range h.seen {
		h.seen[i].When += ahead
	}
	return h.seen, samples, tasks
}

// followCPUs opens the events again if a CPU was switched on, or was off for a while.
func (h *Host) followCPUs(now int64) {
	if !h.asked.IsDue(now) {
		return
	}
	anew, before := h.asked.MissedMuch(now), h.online
	h.online = cpuset.Online()
	if !anew && !cpuset.HaveCome(before, h.online) && h.Unsampled() == 0 {
		return
	}
	h.blind = true
	unsampled := max(h.tasks.reopen(h.online), h.samples.reopen(h.online))
	if unsampled > 0 {
		h.online = before // try again at the next look
	}
	h.unsampled.Store(int64(unsampled))
}

// Unsampled returns how many CPUs are on but have no samples: the kernel had no room for their events, and goprof tries
// again. Any goroutine may call it.
func (h *Host) Unsampled() int { return int(h.unsampled.Load()) }

// Record is described at ring.Taker.
func (h *Host) Record(b ring.Bytes, rec ring.Record) {
	if c, ok := b.ParseEventChain(rec); !ok {
		*h.lost++
	} else if c.Kind == ring.KindSample || c.Exec || c.PID == c.TID {
		h.seen = append(h.seen, c) // threads that begin, end or get a name are left out
	}
}

// Lose is described at ring.Taker.
func (h *Host) Lose(_ ptrace.Outcome, n int64) { *h.lost += n }
