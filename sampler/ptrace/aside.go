//go:build linux

package ptrace

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/arch/errand"
)

// How a thread that we took the CPU from goes on where it was.
//
// To let a thread go is to wake it up, and the kernel looks for an idle CPU for it. Ours is not idle while we hold it,
// so the thread would go on elsewhere: its caches are cold there, and a CPU that a virtual machine has given back
// takes some 50 us to come. But a CPU on which only SCHED_IDLE threads are counts as idle, and the one where the thread
// was before is asked first (kernel/sched/fair.c, select_idle_sibling, sched_idle_cpu). So we are such a thread while
// we let it go. It takes the CPU from us at once, and we have none.
//
// Before that we wake up a raiser, a Runner on an idle CPU. It waits a little, brings us to that CPU and gives us our
// priority back. There our books are in nobody's way (docs/decisions/0018).

const (
	// raiseAfter is how long it waits: until we have let the thread go.
	raiseAfter = int64(60_000)
	// promptly is how soon we go on as a SCHED_IDLE thread where nobody else waits for this CPU.
	promptly = int64(15_000)
	// notAside is for how long we let threads go as we are, after somebody else took the CPU from us first.
	notAside = int64(30_000_000)
)

// raises is when our priority is raised: once more if we are not back by then. That is so where the hypervisor has
// taken our CPU away just before we give up our priority.
var raises = [4]int64{raiseAfter, raiseAfter + 300_000, raiseAfter + 3_000_000, raiseAfter + 30_000_000}

// raiser is a Runner that raises our priority.
type raiser struct {
	runner *errand.Runner
	*raiserRoom
	owner  int   // thread id of the OS thread whose priority it raises
	works  bool  // it is permitted to
	cpu    int   // where it brings us; -1: nowhere
	at     int   // where it is; -1: anywhere
	resume int64 // the moment before which it is not used
}

// raiserRoom is what lies in the Runner's Room.
type raiserRoom struct {
	idle, first unix.SchedAttr
	back        atomic.Uint32 // 1: we are back
	moved       atomic.Uint32 // where we wait to be brought away
	calls       [1 + 3*len(raises)]errand.Call
	until       [len(raises)]unix.Timespec
	to          cpuMask
}

// newRaiser is nil where there can be none, or where it may not have real-time priority.
func newRaiser() *raiser {
	runner, err := errand.New(int(unsafe.Sizeof(raiserRoom{})))
	if err != nil {
		return nil
	}
	r := &raiser{runner: runner, raiserRoom: (*raiserRoom)(unsafe.Pointer(&runner.Room()[0])), cpu: -1, at: -1}
	r.idle = unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE, Flags: resetOnFork}
	r.first = realTime(tracerPriority)
	// Who leaves SCHED_IDLE needs more permission than who becomes SCHED_FIFO (kernel/sched/syscalls.c,
	// user_check_sched_setscheduler): so the raiser itself tries that first.
	if unix.SchedSetAttr(runner.TID(), &r.idle, 0) != nil || !goFirst(runner.TID(), runnerPriority) {
		runner.End()
		return nil
	}
	return r
}

// serve prepares the calls for an OS thread, and makes sure that they are permitted.
func (r *raiser) serve(tid int) {
	who, size := uintptr(tid), unsafe.Sizeof(r.to)
	raise := errand.Call{Number: unix.SYS_SCHED_SETATTR, Args: [6]uintptr{who, uintptr(unsafe.Pointer(&r.first))}}
	move := errand.Call{Number: unix.SYS_SCHED_SETAFFINITY, Args: [6]uintptr{who, size, uintptr(unsafe.Pointer(&r.to))}}
	calls := append(r.calls[:0], errand.WaitFor(&r.back, &r.until[0]), move, raise, errand.WakeUp(&r.moved))
	for i := 1; i < len(raises); i++ {
		calls = append(calls, errand.WaitFor(&r.back, &r.until[i]), raise, errand.WakeUp(&r.moved))
	}
	var ts unix.Timespec
	r.owner, r.works = 0, false // it may have no CPU just now: then this is tried again
	r.runner.GoAlong(calls[2:3])
	if r.runner.Wait(Monotonic(&ts) + readLimit) {
		_, e := r.runner.Result()
		r.owner, r.works = tid, e == 0
	}
}

// sit has it do its work on that CPU.
func (r *raiser) sit(cpu int) {
	switch {
	case cpu < 0 || cpu/64 >= len(r.to) || !r.runner.Returned():
		r.cpu = -1
		return
	case cpu != r.at:
		r.to = cpuMask{}
		if r.at = -1; r.to.setOnly(r.runner.TID(), cpu) {
			r.at = cpu
		}
		r.to[cpu/64] = 1 << (cpu % 64)
	}
	r.cpu = r.at
}

// ask has our priority raised a little later.
//
//go:nosplit
func (r *raiser) ask(now int64) {
	for i := range raises {
		at := now + raises[i]
		r.until[i].Sec, r.until[i].Nsec = at/1e9, at%1e9
	}
	r.back.Store(0)
	r.runner.GoAlong(r.calls[:])
}

// GoOnAt says which CPU nobody needs: LookHeld lets the thread have its own CPU at once, and returns there. -1: no such
// CPU is known.
func (t *Tracer) GoOnAt(cpu int) {
	if !t.onItsThread() {
		return
	}
	if t.raiser == nil {
		if cpu < 0 || t.noRaiser {
			return
		}
		if t.raiser = newRaiser(); t.raiser == nil {
			t.noRaiser = true
			return
		}
	}
	r := t.raiser
	if r.owner != t.owner && r.runner.Returned() {
		r.serve(t.owner)
	}
	r.sit(cpu)
}

// WillStepAside reports whether a thread of which hint is known, on the CPU where we are, is to be let go by a
// SCHED_IDLE thread. Not where stops are pending: those threads would stand still meanwhile. Not where more is to be
// read of the thread as soon as it is let go.
func (t *Tracer) WillStepAside(hint *Hint, now int64) bool {
	r := t.raiser
	return r != nil && r.works && r.owner == t.owner && r.cpu >= 0 && r.cpu != t.stayAt && now >= r.resume &&
		r.runner.Returned() && len(t.pending) == 0 && !hint.Soon
}

// releaseAside is release that has tid go on on this CPU.
//
//go:nosplit
func (t *Tracer) releaseAside(tid int, sig uintptr) {
	r := t.raiser
	begun, usedBefore := Monotonic(&t.ts), ownCPUTime(&t.ts)
	r.ask(begun)
	setOwnPriority(&r.idle)
	left, used := Monotonic(&t.ts), ownCPUTime(&t.ts)
	t.look.letGo = ptrace(unix.PTRACE_DETACH, uintptr(tid), 0, sig)
	// The thread stood still for no longer than we have run since, unless somebody else took this CPU between these
	// clocks and its release, some microseconds.
	t.released = left + ownCPUTime(&t.ts) - used
	if CurrentCPU() != r.cpu { // nobody took this CPU from us, as where the thread is in another cgroup
		errand.Await(&r.moved)
	}
	// It may have been raised before we gave it up, and nobody would raise it again.
	r.works = setOwnPriority(&r.first) == 0
	r.back.Store(1)
	errand.Wake(&r.back)
	t.Pauses.Add(t.released - t.missed)
	if left-begun-(used-usedBefore) > promptly {
		r.resume = left + notAside
	}
}

//go:nosplit
func setOwnPriority(attr *unix.SchedAttr) syscall.Errno {
	_, _, e := syscall.RawSyscall(unix.SYS_SCHED_SETATTR, 0, uintptr(unsafe.Pointer(attr)), 0)
	return e
}

//go:nosplit
func ownCPUTime(ts *unix.Timespec) int64 {
	syscall.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_THREAD_CPUTIME_ID, uintptr(unsafe.Pointer(ts)), 0)
	return ts.Sec*1e9 + ts.Nsec
}
