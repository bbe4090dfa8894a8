//go:build linux

package visit

import (
	"goprof/process/procfs"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
	"goprof/sampler/threads"
)

// Counting what became of each look, and charging a thread for it.

// look samples one thread that is due. The thread pays for the look even if the look fails.
func (r *run) look(th *threads.Thread) {
	if !r.Tracer.HasRoom(th.TID) {
		return // a sample of this thread is under way, or too many are: the thread has not paid, and is looked at later
	}
	r.scan.PayForSample(th)
	th.AtLook, th.LookAt = th.Last, r.scan.Now
	snap := r.takeSpare()
	if snap == nil {
		r.Stats.Attempted++
		r.Stats.Lost[ptrace.QueueFull]++
		return
	}
	o := r.Tracer.LookOn(th.TID, int(th.CPU), th.Hint, snap)
	if o == ptrace.Unadmitted { // the thread is looked at later
		th.Credit += r.scan.Interval
		r.spare = snap
		return
	}
	if o != ptrace.Pending {
		r.account(snap, o)
	}
}

// takeSpare returns a snapshot to fill; nil: no snapshot is free.
func (r *run) takeSpare() *look.Look {
	snap := r.spare
	if r.spare = nil; snap == nil {
		snap = r.Queue.Take()
	}
	return snap
}

// account counts what became of a look and passes the snapshot on.
func (r *run) account(snap *look.Look, o ptrace.Outcome) {
	if th, after, ok := r.chargedFor(snap, o); th != nil {
		if !r.visiting && ok && r.scan.HasStats() && threads.HadNoCPU(th.AtLook, after, ptrace.Monotonic(), th.LookAt) {
			r.takeLookBack(th, snap)
			return
		}
		if r.visiting && ok {
			r.scan.UpdateAccount(th, after)
			r.scan.BillPooled(th, snap)
		}
		asleep := !r.visiting && threads.IsInterrupted(r.cpu, snap.Syscall, snap.Regs[r.cpu.SyscallResult])
		r.scan.Bills.BillSample(th, after.Ran, asleep, snap)
		if r.visiting && !ok && r.scan.HasSuccessor(th) {
			o = ptrace.ThreadGone
		}
	}
	n := snap.Samples()
	r.Stats.Attempted += n
	r.CheckEnd(o, snap.Waiting.Unstopped)
	if o == ptrace.Taken {
		r.Stats.Taken += n
		r.Hand(snap)
		return
	}
	r.Stats.Lost[o] += n
	r.Queue.Done(snap)
}

// chargedFor returns the thread that pays for a look, and the CPU time that the kernel has charged that thread. th is
// nil if no thread pays. Call chargedFor before wasAway: if goprof is stopped between the two calls, wasAway notices
// that.
func (r *run) chargedFor(snap *look.Look, o ptrace.Outcome) (th *threads.Thread, after procfs.Schedstat, ok bool) {
	read := func() {
		if th = r.scan.ByTID[snap.TID]; th != nil && o == ptrace.Taken {
			after, ok = r.scan.Charged(th)
		}
	}
	read()
	if r.wasAway() {
		r.scan.ForgiveUse()
		r.scan.Now = ptrace.Monotonic() // once, not for each look that is collected late
		read()
	}
	if o != ptrace.Taken {
		return nil, after, false
	}
	return th, after, ok
}

// wasAway reports whether goprof could not look for a while since the last tick or visit began.
func (r *run) wasAway() bool {
	return r.scan.Now != 0 && ptrace.Monotonic()-r.scan.Now > threads.LongGap+int64(r.Ticks.Interval)
}

// takeLookBack undoes a look at a thread that had no CPU when the tick began. The thread's state is R, but its pc is
// where it lost its CPU. So the look is no sample of what the thread runs.
func (r *run) takeLookBack(th *threads.Thread, snap *look.Look) {
	th.Credit += r.scan.Interval
	r.Stats.Waiting++
	r.Queue.Done(snap)
}
