//go:build linux

package sampler

import (
	"time"

	"goprof/sampler/look"
	"goprof/sampler/ptrace"
)

// What becomes of a wait: the look that counts for it, or the stack with which it began.

// work deals with one record.
func (r *offRun) work(x *offRecord) {
	th := r.threads[x.tid]
	if th == nil {
		if len(r.threads) >= mostKnown {
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
			return // this is a second record of one switch
		}
		th.out, th.counted, th.taken, th.tally, th.tries = x.when, x.when, x.kind == offOutReady, nil, 0
		th.copied.has = th.copied.has && x.when-th.copied.when < int64(time.Millisecond)
	case offIn:
		if th.out != 0 {
			r.finish(th, x.when)
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
		th.tally.Add(1, time.Duration(at-th.counted), at)
	case time.Duration(length) < r.opt.Min:
		r.counts.Short++
		r.counts.ShortFor += time.Duration(length)
	default:
		r.passCopy(th, at)
	}
	if time.Duration(length) >= r.opt.Min {
		r.counts.Waits++
	}
	th.out, th.tally, th.copied.has = 0, nil, false
}

// pass hands over the held look: it is of this wait.
func (r *offRun) pass(th *offThread, until int64) {
	snap := th.snap
	th.snap = nil
	r.held--
	if time.Duration(until-th.out) < r.opt.Min {
		r.q.Done(snap)
		return
	}
	snap.When = th.out
	r.put(th, snap, 0, until)
}

// put hands a look over. The look counts for the wait up to the moment until. A wait that has ended counts once: so it
// is told once, with all of its time.
func (r *offRun) put(th *offThread, snap *look.Look, n, until int64) {
	th.tally = new(look.Tally)
	th.tally.Add(n, time.Duration(until-th.counted), until)
	th.counted = until
	snap.Tally = th.tally
	r.stats.Attempted++
	r.stats.Taken++
	r.q.put(snap)
}

// passCopy hands over the stack with which the thread left its CPU.
func (r *offRun) passCopy(th *offThread, until int64) {
	if r.known[th.tid].Skip {
		return
	}
	snap := r.q.take()
	if snap == nil || !th.copied.has {
		r.stats.Attempted++
		if snap == nil {
			r.stats.Lost[ptrace.QueueFull]++
			return
		}
		r.stats.Lost[ptrace.NoRegisters]++
		r.q.Done(snap)
		return
	}
	c := &th.copied
	snap.When, snap.TID = th.out, th.tid
	snap.Regs, snap.Unknown, snap.SP, snap.Cut = c.regs, c.unknown, c.regs[r.cpu.SP], c.cut
	snap.Stack = append(snap.Stack[:0], c.stack...)
	snap.SideAddr, snap.RunsOn = r.known[th.tid].Side, true
	snap.Waiting = look.Waiting{State: 'S', ByStack: true}
	if th.taken {
		snap.Waiting = look.Waiting{State: 'R', NoCPU: true}
	}
	if r.t.After != nil {
		r.t.After(snap, th.out)
	}
	r.put(th, snap, 1, until)
}

func (r *offRun) dropHeld(th *offThread) {
	if th.snap != nil {
		r.q.Done(th.snap)
		th.snap = nil
		r.held--
	}
}

// lookAtWaiting finds out what threads wait for, if they have waited since before the records were read. Looks of the
// tick before are handed over: no record has said that the thread ran since.
func (r *offRun) lookAtWaiting() {
	now := ptrace.Monotonic()
	for tid, th := range r.threads {
		switch {
		case th.out == 0:
		case th.snap != nil && now-th.looked > offTick/2 && time.Duration(now-th.out) >= r.opt.Min:
			r.pass(th, th.looked)
		case th.snap != nil || th.tally != nil || th.tries >= offTries || th.taken || r.held >= mostHeld || r.known[tid].Skip:
		case time.Duration(now-th.out) >= r.opt.Min:
			r.lookAt(th)
		}
	}
}

func (r *offRun) lookAt(th *offThread) {
	snap := r.q.take()
	if snap == nil {
		return
	}
	th.tries++
	o := r.t.LookUnstoppedDuring(th.tid, r.known[th.tid], snap, r.opt.During)
	if o != ptrace.Taken {
		r.q.Done(snap)
		r.checkEnd(o)
		if o == ptrace.ThreadGone || o == ptrace.Zombie { // the thread's last switch was its end
			delete(r.threads, th.tid)
		}
		return
	}
	th.snap, th.looked = snap, ptrace.Monotonic()
	r.held++
	r.stats.Looks.Unstopped++
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

// finishAll ends all waits: the run is over.
func (r *offRun) finishAll() {
	r.ended = ptrace.Monotonic()
	r.drain(r.ended)
	for _, th := range r.threads {
		if th.out != 0 && r.ended > th.out {
			r.finish(th, r.ended)
		}
	}
}
