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

// Host samples whatever runs on the CPUs of this machine, with one event for each CPU. A sample has the calls to which
// frame pointers lead, and no memory. Nothing wakes goprof up: its caller reads the rings now and then. Its methods
// belong to one goroutine.
//
// Records of processes have rings of their own. A program that renames its threads all the time fills these within a
// fraction of a second, and no sample is lost by that.
type Host struct {
	samples, tasks hostEvents
	asked          cpuset.Asked
	online         []int
	seen           []ring.Chain
	lost           *int64 // of the rings that are read now

	blind     bool // the events of processes were opened again, and nobody has been told
	unsampled atomic.Int64
}

// hostEvents are events of one sort.
type hostEvents struct {
	rings *perfRings
	wide  *wideEvents
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

// reopen opens all events again. It returns on how many CPUs it could not.
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

// Read returns what has happened since the last Read, in the order of time, by the wall clock. samples and tasks are
// how many of these are missing. The result is valid until the next Read.
func (h *Host) Read() (seen []ring.Chain, samples, tasks int64) {
	now := ptrace.Monotonic()
	ahead := time.Now().UnixNano() - now
	h.samples.wide.redraw(now)
	h.followCPUs(now)
	clear(h.seen)
	h.seen, h.lost = h.seen[:0], &samples
	h.samples.rings.steady.Drain(h)
	h.lost = &tasks // read later: the process of each sample is known
	h.tasks.rings.steady.Drain(h)
	if h.blind { // between the old events and the new ones there were none
		tasks, h.blind = tasks+1, false
	}
	sort.SliceStable(h.seen, func(i, j int) bool { return h.seen[i].When < h.seen[j].When })
	for i := range h.seen {
		h.seen[i].When += ahead
	}
	return h.seen, samples, tasks
}

// followCPUs opens the events again if a CPU has come that was not there, or was away.
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
		*h.lost++
	} else if c.Kind == ring.KindSample || c.Exec || c.PID == c.TID {
		h.seen = append(h.seen, c) // no thread that begins, ends or gets a name
	}
}

// Lose is ring.Taker's.
func (h *Host) Lose(_ ptrace.Outcome, n int64) { *h.lost += n }
