//go:build linux

package sampler

import (
	"goprof/process/procfs"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
)

// This file keeps the account of one look: what became of it, and who pays for it.

// look samples one thread that is due. Whatever comes of it, the thread has paid.
func (r *run) look(th *thread) {
	if !r.t.HasRoom(th.tid) {
		return // this sample is under way, or more than enough are: the thread has not paid and waits for its time
	}
	r.scan.payForSample(th)
	th.atLook, th.lookAt = th.last, r.scan.now
	snap := r.takeSpare()
	if snap == nil {
		r.stats.Attempted++
		r.stats.Lost[ptrace.QueueFull]++
		return
	}
	o := r.t.LookOn(th.tid, int(th.cpu), th.hint, snap)
	if o == ptrace.Unadmitted { // the thread is looked at later
		th.credit += r.scan.interval
		r.spare = snap
		return
	}
	if o != ptrace.Pending {
		r.account(snap, o)
	}
}

// takeSpare is a snapshot to fill, nil if there is none.
func (r *run) takeSpare() *look.Look {
	snap := r.spare
	if r.spare = nil; snap == nil {
		snap = r.q.take()
	}
	return snap
}

// account counts what became of a look and passes the snapshot on.
func (r *run) account(snap *look.Look, o ptrace.Outcome) {
	if th, after, ok := r.chargedFor(snap, o); th != nil {
		if !r.visiting && ok && !r.scan.noStats && hadNoCPU(th.atLook, after, ptrace.Monotonic(), th.lookAt) {
			r.takeLookBack(th, snap)
			return
		}
		if r.visiting && ok {
			r.scan.updateAccount(th, after)
			r.scan.billPooled(th, snap)
		}
		asleep := !r.visiting && isInterrupted(r.cpu, snap.Syscall, snap.Regs[r.cpu.SyscallResult])
		r.scan.bills.billSample(th, after.Ran, asleep, snap)
		if r.visiting && !ok && r.scan.hasSuccessor(th) {
			o = ptrace.ThreadGone
		}
	}
	n := snap.Samples()
	r.stats.Attempted += n
	r.checkEnd(o)
	if o == ptrace.Taken {
		r.stats.Taken += n
		r.hand(snap)
		return
	}
	r.stats.Lost[o] += n
	r.q.Done(snap)
}

// chargedFor is the thread that pays for a look, and what the kernel has charged it; nil: nobody pays. Whether goprof
// was stopped in the middle of the look is asked after the reading: what is read after the question could have been
// used while goprof was stopped.
func (r *run) chargedFor(snap *look.Look, o ptrace.Outcome) (th *thread, after procfs.Schedstat, ok bool) {
	read := func() {
		if th = r.scan.byTID[snap.TID]; th != nil && o == ptrace.Taken {
			after, ok = r.scan.charged(th)
		}
	}
	read()
	if r.wasAway() {
		r.scan.forgiveUse()
		r.scan.now = ptrace.Monotonic() // once, not for each look that is collected late
		read()
	}
	if o != ptrace.Taken {
		return nil, after, false
	}
	return th, after, ok
}

// hasSuccessor forgets a thread that has ended, and reports whether its number has passed to another thread of the
// process. A visit does not ask who has the number before the look. So what was known of the thread that has ended,
// such as where its stack is, was used for the other one.
func (s *scan) hasSuccessor(th *thread) bool {
	tid := th.tid
	s.forget(th)
	return s.proc.Owns(tid)
}

// wasAway reports whether nobody could look for a while, since the last tick or visit began.
func (r *run) wasAway() bool {
	return r.scan.now != 0 && ptrace.Monotonic()-r.scan.now > longGap+int64(r.ticks.interval)
}

// takeLookBack forgets a look at a thread that had no CPU when the tick began. The thread's state is R, but it stands
// where it lost its CPU, however often it is looked at. Such a look is no sample of what the thread runs.
func (r *run) takeLookBack(th *thread, snap *look.Look) {
	th.credit += r.scan.interval
	r.stats.Waiting++
	r.q.Done(snap)
}

// hadNoCPU compares what the kernel had charged a thread before a look that began at lookAt with what it has charged
// the thread now, when the look is over.
func hadNoCPU(before, after procfs.Schedstat, now, lookAt int64) bool {
	if after.Turns == before.Turns {
		return false // the thread has had its CPU all the time
	}
	// The thread was given a CPU to stop on, after it had waited for so long. If it lost its CPU when we woke up, we
	// took the CPU away: that is a sample. If it lost its CPU earlier, somebody else took the CPU away.
	return now-int64(after.Waited-before.Waited) < lookAt
}
