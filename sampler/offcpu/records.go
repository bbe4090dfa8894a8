//go:build linux

package offcpu

import (
	"cmp"
	"slices"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
	"goprof/sampler/ring"
)

// The kernel's records of context switches, read from the rings in the order of time.

// offCopy is the kernel's copy in a record of a switch.
type offCopy struct {
	when    int64
	regs    arch.Regs
	unknown uint64
	has     bool
	owned   bool // stack is outside of offRun.arena
	stack   []byte
	cut     bool
	context look.Context
}

// own copies the stack into buf, so that the stack outlives this reading of the rings. It returns the buffer.
func (c *offCopy) own(buf []byte) []byte {
	if !c.owned {
		buf = append(buf[:0], c.stack...)
		c.stack, c.owned = buf, true
	}
	return buf
}

func (x *wakeup) own() {
	if x != nil {
		x.copy.own(nil)
	}
}

type offRecord struct {
	when  int64
	tid   int
	kind  offKind
	copy  offCopy
	until int64   // for offLost: the end of the gap
	woke  *wakeup // for offWoken
}

type offKind uint8

const (
	offStackOf offKind = iota // the stack of a thread that is about to leave its CPU
	offOut
	offOutReady // the thread left its CPU, but wanted to go on
	offIn
	offWoken
	offLost // records are missing
)

// offAttr returns the attributes of an event for all switches of a thread, and of the threads that this thread starts.
// There is a sample when a thread leaves its CPU, a record when it leaves its CPU, and another when it gets one.
func offAttr(cpu *arch.CPU, stack int) unix.PerfEventAttr {
	attr := ring.SampleAttr(cpu, 1, stack, ring.InKernel, false)
	attr.Config = unix.PERF_COUNT_SW_CONTEXT_SWITCHES
	attr.Bits |= unix.PerfBitContextSwitch | unix.PerfBitSampleIDAll | unix.PerfBitInherit
	return attr
}

// drain reads the rings, and works off all records from before until. The records of one CPU are in order, and those of
// all CPUs are complete up to that moment.
func (r *offRun) drain(until int64) {
	for i, one := range r.rings {
		r.reading = i
		one.Drain(r)
		r.endGap(until)
	}
	if r.wakes != nil {
		r.wakes.rings.Drain(r.wakes)
	}
	slices.SortStableFunc(r.records, func(a, b offRecord) int { return cmp.Compare(a.when, b.when) })
	n := 0
	r.Tracer.Apart(func() { // After may read the process's memory
		for ; n < len(r.records) && r.records[n].when < until; n++ {
			r.work(&r.records[n])
		}
	})
	rest := r.records[n:]
	for i := range rest {
		rest[i].copy.own(nil)
		rest[i].woke.own()
	}
	for _, th := range r.threads { // a thread's stack may come before the record of its leaving
		if th.copied.has && th.tally == nil {
			th.buf = th.copied.own(th.buf)
		}
		th.woken.own()
	}
	r.records = append(r.records[:0], rest...)
	r.arena.empty()
	r.settle(until)
}

// Record is described at ring.Taker. It keeps the record.
func (r *offRun) Record(b ring.Bytes, rec ring.Record) {
	switch rec.Kind {
	case ring.KindSample:
		if s := &r.sample; b.Parse(rec, r.cpu, false, s) && s.PID == r.pid {
			r.see(s.When)
			c := offCopy{when: s.When, regs: s.Regs, unknown: s.Unknown, has: s.HasRegs, context: s.Context}
			size, cut, _ := s.OwnStack(s.Regs[r.cpu.SP], r.known[s.TID])
			if c.stack, c.cut = r.arena.take(size), cut; c.stack == nil {
				return // goprof is far behind: the wait will have no stack
			}
			b.CopyTo(c.stack, s.StackAt)
			r.records = append(r.records, offRecord{when: s.When, tid: s.TID, kind: offStackOf, copy: c})
		}
	case ring.KindSwitch:
		if rec.End-rec.At < 16 || int(int32(b.U32(rec.At))) != r.pid {
			return
		}
		x := offRecord{tid: int(int32(b.U32(rec.At + 4))), when: int64(b.U64(rec.At + 8)), kind: offIn}
		if rec.Misc&ptrace.NoteOfOut != 0 {
			if x.kind = offOut; rec.Misc&ring.SwitchReady != 0 {
				x.kind = offOutReady
			}
		}
		r.see(x.when)
		r.records = append(r.records, x)
	}
}

// Lose is described at ring.Taker.
func (r *offRun) Lose(o ptrace.Outcome, n int64) {
	if o != ptrace.Throttled { // switches do not come from a timer
		r.lose(n, r.seen[r.reading])
	}
}

// lose notes that n records are missing. from is the time of the ring's last record before the gap. The next record of
// the ring ends the gap.
func (r *offRun) lose(n, from int64) {
	r.counts.Dropped += n
	r.Stats.Attempted += n
	r.Stats.Lost[ptrace.RingFull] += n
	r.unmet += n
	if r.wakes != nil {
		r.wakes.lostAt = ptrace.Monotonic()
	}
	r.gap = len(r.records)
	r.records = append(r.records, offRecord{when: from, kind: offLost})
}

// see notes the time of a record of the present ring.
func (r *offRun) see(when int64) {
	r.seen[r.reading] = when
	r.endGap(when)
}

func (r *offRun) endGap(at int64) {
	if r.gap >= 0 {
		r.records[r.gap].until = at
	}
	r.gap = -1
}

// passGap counts waits up to the moment at which records begin to be missing. For the time after that, goprof does not
// know which threads wait until findWaiting has asked. The records of other CPUs from that time are of no use, because
// their counterparts are missing.
func (r *offRun) passGap(from, until int64) {
	from = max(from, r.blind) // a ring that lost its first records does not know when the gap began
	for _, th := range r.threads {
		if th.out != 0 && th.out < from {
			r.finish(th, max(from, th.counted))
		}
		if th.tally != nil {
			th.tally.End(look.WakerLost)
		}
		r.forget(th, from)
	}
	r.blind = max(r.blind, until)
	if r.lostFrom == 0 || from < r.lostFrom {
		r.lostFrom = from
	}
}

// forget is called when goprof does not know whether a thread waits. A wake-up before the moment at may end an unknown
// wait, so it counts for no wait.
func (r *offRun) forget(th *offThread, at int64) {
	r.dropHeld(th)
	th.out, th.ran, th.tally, th.copied.has, th.woken, th.slept = 0, at, nil, false, nil, [mostSlept]slept{}
}
