//go:build linux

package wall

import (
	"time"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/process/procfs"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
	"goprof/sampler/threads"
)

// One visit of an Engine to one thread, and the counts of its results.

// visit finds out what a thread does now. Each visit is one look, and is counted by its outcome.
func (r *wallRun) visit(th *watched) {
	switch {
	case th.hint.Skip:
		r.threads.quiet.skips = true
		return
	case th.zombie:
		if th.readAs <= r.threads.quiet.since { // otherwise the thread would look like one that was not read
			r.threads.readCharged(th)
		}
		return
	}
	stat, ok := r.threads.charged(th)
	if !ok {
		r.threads.forget(th)
		return
	}
	passed := time.Duration(r.now - th.lookedAt)
	if passed > max(time.Duration(threads.LongGap), 4*r.Ticks.Interval) {
		passed = r.Ticks.Interval // goprof or the machine was stopped, and what the thread did is not known
	}
	th.lookedAt = r.now
	switch {
	case th.pending: // the thread was told to stop, but has had no CPU to stop on
		th.owed++
		th.owedTime += passed
		th.waited += passed
	case th.still && (th.again == 0 || r.now < th.again) && stat == th.last && !th.tally.IsVoid():
		th.tally.Add(1, passed, r.now)
		r.Stats.Attempted++
		r.Stats.Taken++
		r.Stats.Looks.Repeated++
		if r.threads.quiet.now && !th.hot {
			r.Stats.Looks.Quiet++
		}
	default:
		r.settleReady(th, stat)
		th.owed, th.owedTime, th.waited = 1, passed, 0
		th.before, th.beganAt = stat, r.now
		r.lookAnew(th)
	}
}

// settleReady deals with a thread that has moved since it was found at rest. The kernel reports how long the thread
// waited for its CPU after it was woken (schedstat's second field). After several turns on a CPU, settleReady takes the
// mean. Looks in that time counted the thread as not moved. Their number is not known, so settleReady draws it, with
// the right mean.
func (r *wallRun) settleReady(th *watched, now procfs.Schedstat) {
	if !th.still || now.Turns <= th.last.Turns || now.Waited <= th.last.Waited {
		return
	}
	waited := float64(now.Waited-th.last.Waited) / float64(now.Turns-th.last.Turns)
	n := int64(waited/float64(r.Ticks.Interval) + r.Ticks.Rng.Float64())
	looks, all := th.tally.Count()
	n = min(n, looks-1) // at the first look the thread was at rest
	if n > 0 {
		th.tally.Ready(n, time.Duration(float64(all)*float64(n)/float64(looks)))
	}
}

// lookAgain is when goprof looks again at a thread at rest, if a garbage collection hid what the JVM says of the
// thread. Until the collection ends nothing can be read, and each look in between would have to be walked.
const lookAgain = int64(100 * time.Millisecond)

// lookAnew looks at a thread that has moved since its last look, or has had no look yet.
func (r *wallRun) lookAnew(th *watched) {
	th.still, r.looked = false, true
	if th.tally != nil && th.tally.IsVoid() {
		clear(th.rests[:]) // the results of its stops may be lost as well
	}
	snap := r.freeSnapshot()
	if snap == nil {
		if !ptrace.SuspendWanted() && !r.Over() {
			r.lose(th, ptrace.QueueFull)
		}
		return
	}
	o := r.Tracer.LookUnstoppedDuring(th.tid, th.hint, snap, r.opt.During)
	switch {
	case o == ptrace.Running:
		r.lookRunning(th, snap)
	case o == ptrace.Taken && r.opt.NativeOnce && !r.opt.NonBlocking && th.restAt(r.pcOf(snap), snap.SP) == nil:
		r.lookAtRest(th, snap)
	case o == ptrace.Taken:
		r.restoreCall(th, snap)
		th.still, th.again = true, 0
		if snap.Waiting.Java.Moving {
			th.again = r.now + lookAgain
		}
		th.last = r.Tracer.Motion().Charged
		if r.threads.noStats {
			th.last = procfs.Schedstat{Turns: r.Tracer.Motion().Switches}
		}
		r.Stats.Looks.Unstopped++
		r.accountAndPass(th, snap, o)
	default:
		r.accountAndPass(th, snap, o)
	}
}

// lookRunning looks at a thread that is on a CPU or waits for one.
func (r *wallRun) lookRunning(th *watched, snap *look.Look) {
	switch {
	case r.opt.WaitingOnly:
		r.Stats.Looks.Running++
		r.Queue.Done(snap)
	case r.opt.NonBlocking:
		r.Stats.Looks.Running++
		r.notLookedAt(snap)
		r.accountAndPass(th, snap, ptrace.Taken)
	default:
		r.stopOne(th, snap)
	}
}

// lookAtRest stops a thread at rest, for its registers. The last look, without a stop, showed what the thread waits
// for.
func (r *wallRun) lookAtRest(th *watched, snap *look.Look) {
	th.atRest, th.resting = true, snap.Waiting
	th.addRest(rest{r.pcOf(snap), snap.SP, snap.Waiting.Call, snap.Waiting.File})
	r.stopOne(th, snap)
}

// restoreCall sets the system call of a thread that was stopped in it and has since continued it: the kernel no longer
// says which call it was.
func (r *wallRun) restoreCall(th *watched, snap *look.Look) {
	if w := &snap.Waiting; w.Call == arch.CallRestart {
		if at := th.restAt(r.pcOf(snap), snap.SP); at != nil {
			w.Call, w.File = at.call, at.file
		}
	}
}

func (r *wallRun) pcOf(snap *look.Look) uint64 { return snap.Regs[r.cpu.PC] }

// stopOne looks at a thread by a stop. The stop may take effect after stopOne has returned.
func (r *wallRun) stopOne(th *watched, snap *look.Look) {
	o := r.Tracer.LookOn(th.tid, r.Tracer.Motion().CPU, th.hint, snap)
	if o == ptrace.Unadmitted && !th.atRest { // the thread is known to run
		r.Stats.Looks.Running++
		r.notLookedAt(snap)
		r.accountAndPass(th, snap, ptrace.Taken)
		return
	}
	if th.pending = o == ptrace.Pending; !th.pending {
		r.account(snap, o)
	}
}

// notLookedAt makes a snapshot of a thread of which only one thing is known: it runs.
func (r *wallRun) notLookedAt(snap *look.Look) {
	tid := snap.TID
	snap.Reset()
	snap.TID, snap.When = tid, r.now
	snap.Waiting = look.Waiting{State: 'R', Unstopped: true}
}

// account finishes a look by a stop, when the stop has come or never will.
func (r *wallRun) account(snap *look.Look, o ptrace.Outcome) {
	th := r.threads.byTID[snap.TID]
	if th == nil { // the thread left the list meanwhile
		th = &watched{tid: snap.TID, fd: -1, owed: 1}
	}
	th.pending = false
	if o == ptrace.Taken {
		r.Stats.Looks.Stopped++
		r.fillWaiting(th, snap)
	}
	if th.atRest && (o == ptrace.Backlog || o == ptrace.Unadmitted) { // the thread will be stopped there again
		th.forgetRest()
	}
	th.atRest = false
	r.accountAndPass(th, snap, o)
}

// fillWaiting writes into a look what the thread did before the stop. If the stop has interrupted a system call, the
// look shows the thread as sleeping in that call.
func (r *wallRun) fillWaiting(th *watched, snap *look.Look) {
	w := &snap.Waiting
	result := snap.Regs[r.cpu.SyscallResult]
	slept := threads.IsInterrupted(r.cpu, snap.Syscall, result)
	if th.atRest {
		r.Stats.Looks.AtRest++
		// Some calls do not go on after a stop, and the program notices (EINTR, signal(7)).
		if slept || -int64(result) == int64(unix.EINTR) && (snap.Syscall >= 0 || th.restAt(r.pcOf(snap), snap.SP) != nil) {
			*w = th.resting
			w.Unstopped = false
			return
		}
	}
	w.Reset()
	w.State = 'R'
	if slept {
		r.Stats.Looks.Asleep++
		w.State, w.Call = 'S', r.cpu.Calls[snap.Syscall]
		return
	}
	if r.threads.byTID[th.tid] != th {
		return // the thread has left the list: what is read of it now would stay in the account for ever
	}
	after, ok := r.threads.readCharged(th)
	// The middle of the time in which the thread got the CPU to stop on.
	came := snap.When + (r.Tracer.Released()-snap.When)/2
	w.NoCPU = ok && !r.threads.noStats && threads.HadNoCPU(th.before, after, came, th.beganAt)
}

// accountAndPass counts what became of a look and passes the snapshot on.
func (r *wallRun) accountAndPass(th *watched, snap *look.Look, o ptrace.Outcome) {
	if o != ptrace.Taken {
		r.Queue.Done(snap)
		r.lose(th, o)
		return
	}
	r.CheckEnd(o, false)
	r.Stats.Attempted += th.owed
	r.Stats.Taken += th.owed
	th.tally = new(look.Tally)
	if th.still && !r.threads.noStats {
		th.tally.Rest = &look.Charge{Ran: th.last.Ran, Turns: th.last.Turns}
	}
	if th.later {
		th.tally.Add(0, 0, snap.When)
	} else {
		th.tally.Add(th.owed, th.owedTime, snap.When)
	}
	if th.owed > 1 { // it may have run when it was told to stop; until the stop, it had no CPU
		th.tally.Ready(th.owed-1, th.waited)
		r.Stats.Looks.Repeated += th.owed - 1
	}
	snap.Tally = th.tally
	r.Queue.Put(snap)
}

func (r *wallRun) lose(th *watched, o ptrace.Outcome) {
	switch o {
	case ptrace.ThreadGone:
		r.threads.forget(th)
	case ptrace.Zombie:
		th.zombie = true // the leader stays in the list as long as the other threads live
	}
	r.Stats.Attempted += th.owed
	r.Stats.Lost[o] += th.owed
	r.CheckEnd(o, false)
}

const (
	// queuePatience is how long a look waits for a free snapshot. Walking takes longer than looking if thousands of
	// threads are seen for the first time, or have all moved.
	queuePatience = 250 * time.Millisecond
	queueNap      = int64(500 * time.Microsecond)
)

// freeSnapshot waits for a free snapshot, up to queuePatience. It returns nil if there is none.
func (r *wallRun) freeSnapshot() *look.Look {
	if snap := r.Queue.Take(); snap != nil {
		return snap
	}
	for end := ptrace.Monotonic() + int64(queuePatience); ; {
		now := ptrace.Monotonic()
		if now >= end || !r.Sleep(now+queueNap) {
			return nil
		}
		if snap := r.Queue.Take(); snap != nil {
			return snap
		}
	}
}
