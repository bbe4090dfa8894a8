//go:build linux

package ptrace

import (
	"bytes"
	"errors"
	"math"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/process"
	"goprof/process/procfs"
	"goprof/sampler/look"
)

const (
	// DefaultStackLimit bounds the copy of a stack by default.
	DefaultStackLimit = 1 << 20
	// unknownStack is the size of the copy if the top of the stack is not known.
	unknownStack = 64 << 10
	// MaxPending bounds the pending stops.
	MaxPending = 64
)

// Tracer looks at threads of one process. ptrace binds a tracee to the OS thread that seized it. So call all methods on
// one goroutine that is locked to its OS thread. On another OS thread the methods return WrongThread and do nothing.
//
// If stops are pending when the Tracer is no longer needed, let its OS thread end (return from the goroutine without
// runtime.UnlockOSThread): the kernel then releases all threads that the OS thread had seized.
type Tracer struct {
	// StackLimit bounds the copy of a stack.
	StackLimit int
	// After is called with each snapshot right after the release of its thread. It reads what must be read soon, but
	// not in the pause. released is the time of the release, as CLOCK_MONOTONIC, or StandsStill. After may be nil.
	After func(snap *look.Look, released int64)
	// Trail is followed in each pause. After may change it. nil: there is none.
	Trail *process.Trail
	// Contexts says where threads publish their contexts. nil: contexts are not wanted.
	Contexts *Contexts
	// Enough returns true when no more looks are wanted. It may be nil.
	Enough func() bool
	// Stay keeps this OS thread on its CPU even if the thread to stop is on the same CPU (elsewhere.go).
	Stay bool
	// Pauses are the lengths of pauses, as upper bounds: from the last moment at which the thread was seen not to have
	// stopped, to the return of its release.
	Pauses Histogram
	// Signals counts looks at threads that were about to get a signal.
	Signals int64
	// Voids counts looks without a stop that were void because the thread ran. A repeated look counts too.
	Voids int64

	pid   int
	cpu   *arch.CPU
	proc  *procfs.Dir
	apart int   // the thread through which Apart reads memory
	owner int   // thread id of this OS thread
	err   error // the error behind the last Failed

	releaser *releaser // nil before the first stop
	guard    *lateStop // of the thread that was told to stop last, and did not in the pause

	gate  *gate // nil before the first stop
	holds Holds
	over  int64 // pauses that were too long and have no cause yet

	pending []pendingStop
	reaped  []int // threads that HoldAll has seized (seize.go)
	nextP   int
	cpus    cpuMask

	// These fields serve reads of the target's memory (reader.go, silent.go).
	reader        *reader
	ownReads      *ownReads // set in an Observer: its reader has no Runner
	readUntil     int64     // when the reads of this look are given up
	silent        bool      // a read of this look was given up
	lookTID       int       // the thread of the present look
	silentThreads map[int]*silentThread
	silentIDs     []int
	lateReads     int // reads that were given up and have not returned
	served        *Memory
	here, allowed cpuMask
	preempters    *Preempters
	stayAt        int     // the CPU to which this OS thread is bound, -1: none
	pinned        uintptr // size of allowed while this OS thread is bound to its CPU

	// The fields below are prepared outside the pause and used inside.
	regs       [512]byte
	spAt       int // the offset of the stack pointer in regs
	regsVec    unix.Iovec
	trail      trailCopy
	context    contextCopy
	locals     *arch.LocalsLayout
	pac        [2]uint64 // struct user_pac_mask: data, instructions
	pacVec     unix.Iovec
	pacDue     bool
	pointer    uint64 // the thread pointer, if it is in a register set of its own
	pointerVec unix.Iovec
	info       siginfo
	ts         unix.Timespec
	mask       uint64
	oldMask    uint64
	missed     int64 // when the thread was last seen not to have stopped
	released   int64 // when the thread was released
	look       pauseLeft
	unstopped  struct { // the content of /proc/PID/task/TID/syscall
		call   int64
		args   [6]uint64
		pc     uint64
		motion Motion
	}
	warmAt  uint64 // stack pointer and size of the last look
	warmLen int
}

type pauseLeft struct {
	when    int64
	regErr  syscall.Errno
	sp      uint64
	want    int
	got     int
	side    int // bytes in reader.side
	cut     bool
	follow  int // bytes in reader.followed
	pieces  int // pieces in reader.trail
	under   int // bytes in reader.under, which are from underSP
	underSP uint64
	context look.ContextState // ContextRead: the record is in reader.context
	letGo   syscall.Errno
}

// NewTracer prepares to look at threads of pid. It stops nothing.
func NewTracer(pid int, cpu *arch.CPU) *Tracer {
	ignoreChildStops()
	t := &Tracer{
		StackLimit: DefaultStackLimit,
		pid:        pid,
		cpu:        cpu,
		proc:       procfs.OpenDir(pid),
		pending:    make([]pendingStop, 0, MaxPending),
		spAt:       prstatusOffset(cpu, cpu.SP),
		locals:     &cpu.Locals,
		pacDue:     cpu.Signs,
		stayAt:     -1,
		// All signals but those of a fault of goprof's own, and the one that ends waitStop.
		mask: ^uint64(1<<(unix.SIGSEGV-1) | 1<<(unix.SIGBUS-1) | 1<<(unix.SIGFPE-1) |
			1<<(unix.SIGILL-1) | 1<<(unix.SIGTRAP-1) | 1<<(boundSignal-1)),
	}
	t.regsVec.Base = &t.regs[0]
	t.pacVec.Base = (*byte)(unsafe.Pointer(&t.pac))
	t.pointerVec.Base = (*byte)(unsafe.Pointer(&t.pointer))
	return t
}

// Close frees the files and threads of the Tracer.
func (t *Tracer) Close() {
	t.stopServing()
	t.closeReaders()
	t.closeGate()
	t.closeReleaser()
	t.proc.Close()
}

// ChangeOSThread binds the Tracer to the next OS thread that calls it. Nothing may be pending: the end of the old OS
// thread has released all threads that it had seized.
func (t *Tracer) ChangeOSThread() { t.owner = 0 }

// Released returns when the thread of the last look was released, as CLOCK_MONOTONIC.
func (t *Tracer) Released() int64 { return t.released }

// Err returns the error behind the last Failed.
func (t *Tracer) Err() error { return t.err }

// prstatusOffset finds the offset of a register in the kernel's register set. Only arch knows the layout, so
// prstatusOffset decodes a set in which all words are different.
func prstatusOffset(cpu *arch.CPU, reg int) int {
	b := make([]byte, cpu.PrstatusSize)
	for i := 0; i < len(b); i += 8 {
		b[i] = byte(i/8 + 1)
	}
	var r arch.Regs
	cpu.DecodeRegs(b, &r)
	return (int(r[reg]) - 1) * 8
}

// Look stops thread tid, fills snap and releases the thread. If the outcome is Pending, the Tracer keeps snap until
// Collect returns it. Otherwise snap is the caller's again, with TID set.
func (t *Tracer) Look(tid int, hint Hint, snap *look.Look) Outcome {
	return t.LookOn(tid, t.proc.LastCPU(tid), hint, snap)
}

// LookOn is Look for a thread that was last seen on that CPU (-1: unknown). If this OS thread is on that CPU, it may
// move to another one.
func (t *Tracer) LookOn(tid, cpu int, hint Hint, snap *look.Look) Outcome {
	snap.TID = tid
	if why, ok := t.mayStop(tid, lateUnknown); !ok {
		return why
	}
	elsewhere := t.cpus.elsewhere(cpu, t.mayMove())
	t.pin()
	defer t.unpin()
	t.lookTID = tid
	t.warmCaches(tid)
	if o := t.readsCameBack(tid); o != Taken {
		return o
	}
	if e := t.seize(tid); e != 0 {
		return t.refused(tid, e)
	}
	// Once a thread is seized, its number cannot pass to another thread.
	ours := t.proc.Owns(tid)

	setSignalMask(&t.mask, &t.oldMask)
	t.beginPause()
	s, sig := t.stop(tid, elsewhere)
	if s == stopped {
		if ours {
			t.copyStopped(tid, &hint)
		}
		t.release(tid, sig)
	} else if s == running {
		t.guard = t.releaser.watch(tid, t.missed)
	}
	t.endPause()

	if !ours {
		t.undo(tid, s)
		return t.gone()
	}
	return t.conclude(tid, s, sig, &hint, snap)
}

// mayStop reports whether the thread can be told to stop, and the reason if not. late is how long the visit has waited.
func (t *Tracer) mayStop(tid int, late int64) (why Outcome, ok bool) {
	switch {
	case !t.onItsThread() || t.ownReads != nil: // no thread may be stopped while an Observer reads
		return WrongThread, false
	case !t.HasRoom(tid):
		return Backlog, false
	}
	if alone := t.leavesAlone(tid); alone != Taken { // called once, because a read may return just now
		return alone, false
	}
	switch {
	case !t.openReader():
		return Failed, false
	case !t.admits(late):
		return Unadmitted, false
	}
	t.openReleaser()
	t.prepareContext()
	return Taken, true
}

// conclude finishes a look at a thread that was released, or has not stopped yet.
func (t *Tracer) conclude(tid int, s state, sig uintptr, hint *Hint, snap *look.Look) Outcome {
	if o := t.readsCameBack(tid); o != Taken {
		t.undo(tid, s)
		return o
	}
	if s == running {
		t.pending = append(t.pending, t.newPending(tid, *hint, snap, t.missed, t.guard))
		return Pending
	}
	return t.finish(tid, s, sig, hint, snap)
}

// undo undoes the look at a thread that belongs to another process, or that was only to be released.
func (t *Tracer) undo(tid int, s state) {
	switch s {
	case stopped:
		if t.look.letGo != 0 {
			t.expectEnd(tid) // the thread was killed before its release
		}
	case running:
		t.letGoLater(tid)
	case ended:
		t.reap(tid)
	case lost:
		t.adoptAfterExec(tid)
	}
}

func (t *Tracer) onItsThread() bool {
	if t.owner == 0 {
		t.owner = unix.Gettid()
	}
	return t.owner == unix.Gettid()
}

// warmCaches makes the calls of the pause in advance, while the thread still runs. At low rates caches are cold, and
// this shortens the pause by a quarter.
func (t *Tracer) warmCaches(tid int) {
	if n := t.warmLen; n > 0 && n <= len(t.reader.stack) {
		t.beginReads()
		t.reader.set(0, &t.reader.stack[0], t.warmAt, n)
		t.fetch(tid, 0, 1)
		if t.silent {
			t.warmLen = 0
		}
	}
	waitPeek(tid, &t.info)
	t.getRegs(tid)
	Monotonic()
}

// finish makes a Snapshot of the results of the pause.
func (t *Tracer) finish(tid int, s state, sig uintptr, hint *Hint, snap *look.Look) Outcome {
	switch s {
	case stopped:
	case ended:
		t.reap(tid)
		return t.gone()
	default: // lost
		t.adoptAfterExec(tid)
		return t.gone()
	}
	if sig != 0 {
		t.Signals++
	}
	l := &t.look
	if l.letGo != 0 {
		// The thread was killed in the pause. It is no longer stopped, and its end must be reaped.
		t.expectEnd(tid)
	}
	if l.regErr != 0 {
		if l.regErr == unix.ESRCH {
			return t.gone()
		}
		t.err = &SyscallError{"PTRACE_GETREGSET", l.regErr}
		return Failed
	}
	t.fill(tid, hint, snap)
	var ok bool
	if snap.Syscall, ok = t.cpu.DecodeRegs(t.regs[:t.cpu.PrstatusSize], &snap.Regs); !ok {
		t.err = errShortRegs
		return Failed
	}
	if t.standsAtSyscall(tid, &snap.Snapshot) {
		snap.Syscall = int64(snap.Regs[t.cpu.SyscallNumber])
	}
	if o := t.readsCameBack(tid); o != Taken {
		return o
	}
	t.warmAt, t.warmLen = l.sp, l.got
	t.after(snap, t.released)
	t.readsCameBack(tid) // the copy of the stack is complete, even if other reads are late
	return Taken
}

// fill makes a snapshot of the look's copies, without the registers and the system call.
func (t *Tracer) fill(tid int, hint *Hint, to *look.Look) {
	d, l, snap := t.reader, &t.look, &to.Snapshot
	snap.Reset()
	to.When, snap.TID, snap.PACMask = l.when, tid, t.pac[1]
	snap.SP, snap.Cut = l.sp, l.cut
	if cap(snap.Stack) < l.got {
		snap.Stack = make([]byte, max(min(l.got+l.got/4, len(d.stack)), min(unknownStack, t.StackLimit)))
	}
	snap.Stack = append(snap.Stack[:0], d.stack[:l.got]...)
	snap.Under, snap.UnderSP = append(snap.Under, d.under[:l.under]...), l.underSP
	snap.Side, snap.SideAddr = append(snap.Side, d.side[:l.side]...), hint.Side
	snap.Followed, snap.RunsOn = append(snap.Followed, d.followed[:l.follow]...), true
	to.Context = look.Context{State: l.context}
	if l.context == look.ContextRead {
		to.Context = look.ParseContext(d.context.record[:look.ContextSize])
	}
	if l.pieces > 0 {
		snap.Trail.List = append(snap.Trail.List, t.trail.list[:l.pieces]...)
		snap.Trail.Bytes = append(snap.Trail.Bytes, d.trail[:t.trail.used]...)
	}
}

// standsAtSyscall reports whether the thread was in a system call, on a CPU whose registers do not say so. It reads the
// code at the pc, after the pause: code does not change.
func (t *Tracer) standsAtSyscall(tid int, snap *process.Snapshot) bool {
	n := len(t.cpu.SyscallInst)
	if n == 0 {
		return false
	}
	t.beginReads()
	t.bringRunner()
	t.reader.set(0, &t.reader.small[0], snap.Regs[t.cpu.PC], n)
	return t.fetch(tid, 0, 1) == n && bytes.Equal(t.reader.small[:n], t.cpu.SyscallInst)
}

// StandsStill replaces the moment of release for a thread that was not stopped. Its look counts only if the thread does
// not run until After has returned.
const StandsStill int64 = math.MaxInt64

func (t *Tracer) after(snap *look.Look, released int64) {
	if t.After != nil {
		t.beginReads()
		t.After(snap, released)
	}
}

// SyscallError names the system call behind a Failed.
type SyscallError struct {
	Call  string
	Errno syscall.Errno
}

func (e *SyscallError) Error() string { return "ptrace: " + e.Call + ": " + e.Errno.Error() }
func (e *SyscallError) Unwrap() error { return e.Errno }

var errShortRegs = errors.New("ptrace: the kernel's register set is too short")

// refused returns the outcome for a thread that could not be seized.
func (t *Tracer) refused(tid int, e syscall.Errno) Outcome {
	if e == unix.ESRCH {
		return t.gone()
	}
	if e != unix.EPERM && e != unix.EACCES && e != unix.ENOSYS { // seccomp filters return any of these
		t.err = &SyscallError{"PTRACE_SEIZE", e}
		return Failed
	}
	state, tracer := t.proc.Status(tid)
	switch {
	case tracer != 0:
		return AlreadyTraced
	case state == 'Z' || state == 'X':
		return t.ended(tid)
	case state == 0:
		return t.gone()
	}
	return NotPermitted
}

// ended returns the Outcome for a thread that has ended but still exists. Only a leader stays so, while other threads
// live. Any other thread is about to vanish.
func (t *Tracer) ended(tid int) Outcome {
	if o := t.gone(); o == ProcessGone || tid != t.pid {
		return o
	}
	return Zombie
}

func (t *Tracer) gone() Outcome {
	if t.proc.Ended() {
		return ProcessGone
	}
	return ThreadGone
}

// pollFor is how long stop waits before it leaves the stop to Collect.
const pollFor = 40 * time.Microsecond
