//go:build linux

package offcpu

import (
	"math/rand/v2"
	"time"

	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
)

// The sample of a wait: either the look that counts for the wait, or the stack with which the wait began.

func (r *offRun) work(x *offRecord) {
	if x.kind == offLost {
		r.passGap(x.when, x.until)
		return
	}
	if x.when < r.blind {
		return
	}
	th := r.threads[x.tid]
	if th == nil {
		if len(r.threads) >= sampler.MostKnown {
			return
		}
		th = &offThread{tid: x.tid}
		r.threads[x.tid] = th
	}
	switch x.kind {
	case offStackOf:
		if th.out == 0 {
			th.copied = x.copy
		}
	case offOut, offOutReady:
		if th.out != 0 {
			return // a second record of the same switch
		}
		th.out, th.counted, th.taken, th.tally, th.tries = x.when, x.when, x.kind == offOutReady, nil, 0
		// The stack belongs to this switch. The kernel copies it just before, unless the host of a virtual machine
		// takes the CPU in between.
		near := x.when-th.copied.when < int64(time.Millisecond)
		th.copied.has = th.copied.has && (near || th.ran > 0 && th.ran < th.copied.when)
	case offIn:
		if th.out != 0 && x.when >= th.out { // an older record is from before goprof knew that the thread waits
			r.finish(th, x.when)
		}
		th.ran, th.woken = x.when, nil
	case offWoken:
		th.woken = x.woke
		// If the waker is off its CPU, the record of its return is missing.
		if by := r.threads[x.woke.tid]; by != nil && by.out == 0 && th.out != 0 {
			x.woke.after = by.sleptWhile(th.out, x.when)
		}
	}
}

// finish ends a thread's wait.
func (r *offRun) finish(th *offThread, at int64) {
	if th.snap != nil {
		if at >= th.looked {
			r.pass(th, at)
		} else {
			r.dropHeld(th)
		}
	}
	length := at - th.out
	switch {
	case th.tally != nil:
		r.counts.Waits++
		th.tally.Add(1, time.Duration(at-th.counted), at)
	case time.Duration(length) < r.opt.Min:
		r.counts.Short++
		r.counts.ShortFor += time.Duration(length)
	default:
		r.draw(th, time.Duration(length), at)
	}
	if th.tally != nil {
		r.endWait(th, at)
	}
	if !th.taken && time.Duration(length) >= r.opt.Min {
		copy(th.slept[1:], th.slept[:])
		th.slept[0] = slept{th.tally, th.out, at}
	}
	th.out, th.tally, th.copied.has = 0, nil, false
}

// draw decides whether a wait without a look counts.
func (r *offRun) draw(th *offThread, length time.Duration, at int64) {
	lot := rand.Float64()
	if x := th.wokenBy(); x != nil {
		lot = x.lot // the kernel has used this lot to decide on the waker's stack
	}
	waits, of := r.thin.standsFor(length, lot, &th.owed)
	if waits == 0 {
		r.counts.Thinned++
		return
	}
	r.counts.Waits += waits
	r.passCopy(th, waits, of, at)
}

// pass hands over the held look, which is now known to belong to this wait.
func (r *offRun) pass(th *offThread, until int64) {
	snap := th.snap
	th.snap = nil
	r.held--
	if time.Duration(until-th.out) < r.opt.Min {
		r.Queue.Done(snap)
		return
	}
	if snap.When = th.out; th.copied.has && th.copied.context.State != look.ContextUnasked {
		snap.Context = th.copied.context // valid for the whole wait: the thread has not run since
	}
	r.put(th, snap, 0, time.Duration(until-th.counted), until)
}

// put hands over a look that stands for a number of waits. of is their time in all, and until is the moment up to which
// it counts. finish adds the end of a wait that goes on.
func (r *offRun) put(th *offThread, snap *look.Look, waits int64, of time.Duration, until int64) {
	th.tally, th.before = new(look.Tally), th.counted
	if snap.Waiting.Unstopped {
		th.tally.Rest = th.rest
	}
	th.tally.Add(waits, of, until)
	th.counted = until
	snap.Tally = th.tally
	r.Stats.Attempted += max(waits, 1)
	r.Stats.Taken += max(waits, 1)
	r.Queue.Put(snap)
}

// passCopy hands over the stack with which the thread left its CPU.
func (r *offRun) passCopy(th *offThread, waits int64, of time.Duration, until int64) {
	if r.known[th.tid].Skip {
		return
	}
	if !th.copied.has && r.unmet > 0 {
		r.unmet--
		r.Stats.Attempted += waits - 1 // dropAll has counted one
		r.Stats.Lost[ptrace.RingFull] += waits - 1
		return
	}
	snap := r.Queue.Take()
	if snap == nil || !th.copied.has {
		r.Stats.Attempted += waits
		if snap == nil {
			r.Stats.Lost[ptrace.QueueFull] += waits
			return
		}
		r.Stats.Lost[ptrace.NoRegisters] += waits
		r.Queue.Done(snap)
		return
	}
	c := &th.copied
	snap.When, snap.TID = th.out, th.tid
	snap.Regs, snap.Unknown, snap.SP, snap.Cut = c.regs, c.unknown, c.regs[r.cpu.SP], c.cut
	snap.Stack = append(snap.Stack[:0], c.stack...)
	snap.SideAddr, snap.RunsOn, snap.Context = r.known[th.tid].Side, true, c.context
	snap.Waiting = look.Waiting{State: 'S', ByStack: true}
	if th.taken {
		snap.Waiting = look.Waiting{State: 'R', NoCPU: true}
	}
	if r.Tracer.After != nil {
		r.Tracer.After(snap, until) // the thread did not run before until
	}
	r.put(th, snap, waits, of, until)
}

func (r *offRun) dropHeld(th *offThread) {
	if th.snap != nil {
		r.Queue.Done(th.snap)
		th.snap = nil
		r.held--
	}
}

// lookAtWaiting looks at threads that have waited since before the last reading, to find out what they wait for. It
// hands over the looks of the last tick: no record has shown that these threads ran since.
func (r *offRun) lookAtWaiting() {
	now := ptrace.Monotonic()
	for tid, th := range r.threads {
		r.repeatVoid(th, now)
		switch {
		case th.out == 0:
		case th.snap != nil && now-th.looked > offTick/2 && time.Duration(now-th.out) >= r.opt.Min:
			r.pass(th, th.looked)
		case th.snap != nil || th.tally != nil || th.tries >= offTries || th.taken || r.held >= mostHeld || r.known[tid].Skip:
		case time.Duration(now-th.out) >= max(r.opt.Min, r.thin.limit):
			r.lookAt(th)
		}
	}
}

// offAgain is the time before a look without a result is repeated.
const offAgain = int64(10 * time.Millisecond)

// repeatVoid makes goprof look again at a thread whose look had no result, because the walker was too late. The next
// look counts for the whole wait. Otherwise all the time of a pool's thread that waits for minutes would be lost.
func (r *offRun) repeatVoid(th *offThread, now int64) {
	if th.tally == nil || !th.tally.IsVoid() || now < th.again {
		return
	}
	th.tally, th.counted, th.tries, th.again = nil, th.before, 0, now+offAgain
}

// lookAt looks at a thread that waits. The look counts only if the thread still waits afterwards.
func (r *offRun) lookAt(th *offThread) {
	snap := r.Queue.Take()
	if snap == nil {
		return
	}
	th.tries++
	o := r.Tracer.LookUnstoppedDuring(th.tid, r.known[th.tid], snap, r.opt.During)
	if o != ptrace.Taken {
		r.Queue.Done(snap)
		r.CheckEnd(o, true)
		if o == ptrace.ThreadGone || o == ptrace.Zombie { // the thread left its CPU for the last time
			delete(r.threads, th.tid)
		}
		return
	}
	th.snap, th.looked = snap, ptrace.Monotonic()
	if c := r.Tracer.Motion().Charged; c.Turns > 0 {
		th.rest = &look.Charge{Ran: c.Ran, Turns: c.Turns}
	} else {
		th.rest = nil // this kernel does not report charges
	}
	r.held++
	r.Stats.Looks.Unstopped++
}

// settle counts waits that go on.
func (r *offRun) settle(until int64) {
	if until-r.settled < offSettle {
		return
	}
	r.settled = until
	r.prune()
	for _, th := range r.threads {
		if th.out != 0 && th.tally != nil && until > th.counted {
			th.tally.Add(0, time.Duration(until-th.counted), until)
			th.counted = until
		}
	}
}

func (r *offRun) finishAll() {
	r.ended = ptrace.Monotonic()
	r.drain(r.ended)
	r.findWaiting(r.ended)
	for _, th := range r.threads {
		if th.out != 0 && r.ended > th.out {
			r.finish(th, r.ended)
		}
	}
}
