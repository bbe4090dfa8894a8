//go:build linux

package events

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/sampler"
	"goprof/sampler/ring"
	"goprof/sampler/span"
)

// counters are the events of a run that the kernel counts for each thread.
type counters struct {
	spans *span.Outputs
	prog  int // the program that writes the spans of events that can have one; -1: none
	fds   []int
	of    []int          // the event's number, by index of fds
	ids   map[uint64]int // the event's number, by the kernel's number of each descriptor
	own   map[uint64]int // the thread that a descriptor was opened for, by the kernel's number
	last  map[int]lastHit
}

type lastHit struct {
	when int64
	sp   uint64
	pc   uint64
	id   uint64
}

// openCounters opens the events that are counters, for each thread and CPU.
func (r *eventRun) openCounters() error {
	r.counters.ids, r.counters.own, r.counters.last = map[uint64]int{}, map[uint64]int{}, map[int]lastHit{}
	if !slices.ContainsFunc(r.list, func(e Event) bool { return e.isCounter() }) {
		return nil
	}
	r.openSpans()
	if c := r.cfg.Contexts; c != nil && c.Published() {
		r.counters.spans = r.spans.NewOutputs()
		r.counters.spans.Open(r.cpus, r.rings)
	}
	r.counters.prog = r.counters.spans.Load()
	return ring.EachThread(r.proc, r.countThread)
}

// countThread opens all counter events for one thread, on each CPU. It notes which descriptor belongs to which event
// and thread.
func (r *eventRun) countThread(tid int) error {
	for i := range r.list {
		e := &r.list[i]
		if !e.isCounter() {
			continue
		}
		attr := r.eventAttr()
		attr.Type, attr.Config, attr.Sample = e.Type, e.Config, max(e.Interval, 1)
		attr.Bits |= unix.PerfBitInherit
		spans := r.counters.prog >= 0 && e.Type != unix.PERF_TYPE_TRACEPOINT // tracepoints take no such program
		if spans {
			attr.Bits |= unix.PerfBitDisabled // the counter starts once the program is attached: each sample has its span
		}
		fds, err := r.rings.OpenEvents(&attr, tid, r.cpus)
		r.counters.fds = append(r.counters.fds, fds...)
		r.counters.of = append(r.counters.of, slices.Repeat([]int{i}, len(fds))...)
		if err != nil {
			return err
		}
		for _, fd := range fds {
			if spans {
				unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, r.counters.prog) // if this fails, there are no spans
				unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0)
			}
			var id uint64
			if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.PERF_EVENT_IOC_ID,
				uintptr(unsafe.Pointer(&id))); e != 0 {
				return &ring.Error{Call: "PERF_EVENT_IOC_ID", Err: e}
			}
			r.counters.ids[id], r.counters.own[id] = i, tid
		}
	}
	return nil
}

// readCounters asks the kernel how much it has counted for each thread, and for the threads that inherited its events.
func (r *eventRun) readCounters() {
	var b [8]byte
	for i, fd := range r.counters.fds {
		if n, err := unix.Read(fd, b[:]); err == nil && n == len(b) {
			c := &r.counts[r.counters.of[i]]
			c.Hits += binary.LittleEndian.Uint64(b[:])
			c.Amount = c.Hits
		}
	}
}

func (c *counters) close() {
	for _, fd := range c.fds {
		unix.Close(fd)
	}
	c.fds = nil
	c.spans.Close()
	if c.spans = nil; c.prog >= 0 {
		unix.Close(c.prog)
	}
	c.prog = -1
}

// twinTime bounds the time between the two records of one hit, in nanoseconds.
const twinTime = 20_000

// isTwin reports whether a record is of a hit that another event has already reported. A thread that was listed while
// it was created has two events: its own and an inherited one.
func (c *counters) isTwin(e *ring.Hit, sp, pc uint64) bool {
	now := lastHit{e.When, sp, pc, e.ID}
	last, ok := c.last[e.TID]
	if ok && last.id != now.id && c.ids[last.id] == c.ids[now.id] && now.when-last.when < twinTime &&
		last.sp == now.sp && last.pc == now.pc && (c.own[now.id] == e.TID || c.own[last.id] == e.TID) {
		return true
	}
	if len(c.last) >= sampler.MostKnown {
		clear(c.last)
	}
	c.last[e.TID] = now
	return false
}
