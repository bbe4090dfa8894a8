//go:build linux

package ptrace

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/sampler/look"
)

// The code of the pause: it runs while a thread of the target is stopped. Every function is nosplit and calls only
// nosplit functions. Signals are blocked during the pause: Go's scheduler interrupts a loop by SIGURG, and Go's
// profiler does so by SIGPROF. Nothing is allocated.

// state is the state of a tracee by waitid.
type state uint8

const (
	running state = iota // running, or asleep: the thread has not stopped
	stopped
	ended
	lost // not a tracee, or not under this number any more
)

// stop tells tid to stop. It waits only for a stop that comes soon. A thread on another CPU stops within some
// microseconds, so stop polls for up to 40 us. A thread on the sampling thread's own CPU cannot stop before the
// sampling thread leaves that CPU, so it becomes pending at once. A thread without a CPU, or in a long system call,
// becomes pending after those 40 us. Pending threads stop when the sampling thread sleeps next: one sleep serves all of
// them. With a sleep for each thread, each pause would include a wait for the CPU.
//
//go:nosplit
func (t *Tracer) stop(tid int, elsewhere bool) (state, uintptr) {
	t.missed = Monotonic()
	t.readUntil = t.missed + readLimit
	ptrace(unix.PTRACE_INTERRUPT, uintptr(tid), 0, 0) // if this fails, peek returns why
	end := t.missed
	if elsewhere {
		end += int64(pollFor)
	}
	for {
		now := Monotonic()
		if s, sig := t.peek(tid); s != running {
			return s, sig
		}
		t.missed = now
		if now >= end {
			return running, 0
		}
	}
}

// peek returns the state of tid. For a stop, it also returns the signal that is about to be delivered.
//
// Three stops look alike; si_status distinguishes them (ptrace(2)):
//   - The stop that was asked for: SIGTRAP with PTRACE_EVENT_STOP in the second byte.
//   - A group stop: SIGSTOP and its like, with the same event. The thread was stopped before, and is stopped again
//     after its release.
//   - A signal about to be delivered: no event. This is as good a moment to look as any: the thread is exactly where
//     the signal met it. The look is taken, and the thread is released with that signal, which delivers the signal
//     with its siginfo. The stop that was asked for is still to come then, and the release cancels it
//     (kernel/ptrace.c, __ptrace_unlink).
//
//go:nosplit
func (t *Tracer) peek(tid int) (state, uintptr) {
	if e := waitPeek(tid, &t.info); e != 0 {
		return lost, 0
	}
	return t.info.decode()
}

// decode interprets the answer of waitid. Its results are those of peek.
//
//go:nosplit
func (info *siginfo) decode() (state, uintptr) {
	if info.pid == 0 {
		return running, 0
	}
	switch info.code {
	case cldTrapped, cldStopped:
		if info.status>>8 == 0 {
			return stopped, uintptr(info.status)
		}
		return stopped, 0
	}
	return ended, 0
}

// copyStopped reads the registers and the stack of a stopped thread.
//
//go:nosplit
func (t *Tracer) copyStopped(tid int, hint *Hint) {
	l := &t.look
	l.got, l.want, l.side, l.cut, l.follow, l.under, l.pieces = 0, 0, 0, false, 0, 0, 0
	l.context = look.ContextUnasked
	l.when = t.missed
	if l.regErr = t.getRegs(tid); l.regErr != 0 {
		return
	}
	if t.pacDue {
		t.getPAC(tid)
	}
	l.sp = *(*uint64)(unsafe.Pointer(&t.regs[t.spAt]))
	t.copyStack(tid, hint)
	t.copyTrail(tid)
	t.copyContext(tid, 0)
}

// copyStack copies the stack from look.sp to its top, or as much as the limit allows. The same system call first copies
// the Side. If the stack pointer is outside the thread's own stack, it is on an unknown stack (of a signal, of a
// coroutine). Then copyStack copies the thread's own stack as well.
//
//go:nosplit
func (t *Tracer) copyStack(tid int, hint *Hint) {
	l := &t.look
	top := hint.StackTop
	known := top > l.sp && l.sp >= hint.StackLow
	limit := min(t.StackLimit, len(t.reader.stack))
	l.want = min(unknownStack, limit)
	if known {
		l.want = limit
		if rest := top - l.sp; rest < uint64(l.want) {
			l.want = int(rest)
		}
	}
	d := t.reader
	d.set(1, &d.stack[0], l.sp, l.want)
	if hint.Side != 0 && hint.SideLen > 0 && hint.SideLen <= MaxSide {
		d.set(0, &d.side[0], hint.Side, hint.SideLen)
		if n := t.fetch(tid, 0, 2); n > hint.SideLen {
			l.side, l.got = hint.SideLen, n-hint.SideLen
			t.copyFollowed(tid, hint)
		}
	}
	if l.got == 0 { // no Side was asked for, or its memory is gone
		l.got = t.fetch(tid, 1, 1)
	}
	l.cut = l.got == l.want && (!known || l.sp+uint64(l.got) < top)
	if hint.StackLow != 0 && !known {
		t.copyUnder(tid, hint)
	}
}

// copyFollowed copies the memory that a pointer in the Side points at. The pointer is mostly nil, so few pauses have
// this system call.
//
//go:nosplit
func (t *Tracer) copyFollowed(tid int, hint *Hint) {
	l, d := &t.look, t.reader
	if hint.FollowLen <= 0 || hint.FollowLen > maxFollow || hint.FollowAt < 0 || hint.FollowAt > l.side-8 {
		return
	}
	at := *(*uint64)(unsafe.Add(unsafe.Pointer(&d.side), hint.FollowAt))
	if at == 0 {
		return
	}
	d.set(0, &d.followed[0], at, hint.FollowLen)
	l.follow = t.fetch(tid, 0, 1)
}

// copyUnder copies the thread's own stack while the thread is on another one. The copy begins at the lowest address
// inside the own stack that a word of the other stack points to. That address is the stack pointer to which the signal
// handler returns, or lies below it.
//
//go:nosplit
func (t *Tracer) copyUnder(tid int, hint *Hint) {
	l, d := &t.look, t.reader
	first := unsafe.Pointer(unsafe.SliceData(d.stack))
	from := hint.StackTop
	for at := 0; at+8 <= min(l.got, unknownStack); at += 8 {
		word := *(*uint64)(unsafe.Add(first, at))
		if word >= hint.StackLow && word < from {
			from = word &^ 7
		}
	}
	if size := min(hint.StackTop-from, uint64(len(d.under))); size > 0 {
		d.set(0, &d.under[0], from, int(size))
		l.under = t.fetch(tid, 0, 1)
		l.underSP = from
	}
}

//go:nosplit
func (t *Tracer) getRegs(tid int) syscall.Errno {
	t.regsVec.Len = uint64(len(t.regs))
	return ptrace(unix.PTRACE_GETREGSET, uintptr(tid), unix.NT_PRSTATUS, uintptr(unsafe.Pointer(&t.regsVec)))
}

// getPAC reads which bits of a code address are its signature. All threads of a process have the same bits, because the
// bits follow from the width of the process's addresses. So one read is enough. A CPU without pointer authentication
// answers EINVAL: no bits.
//
//go:nosplit
func (t *Tracer) getPAC(tid int) {
	t.pacVec.Len = uint64(unsafe.Sizeof(t.pac))
	e := ptrace(unix.PTRACE_GETREGSET, uintptr(tid), ntARMPACMask, uintptr(unsafe.Pointer(&t.pacVec)))
	t.pacDue = e == unix.ESRCH
}

// release releases tid, and delivers the signal that was about to be delivered.
//
//go:nosplit
func (t *Tracer) release(tid int, sig uintptr) {
	t.look.letGo = ptrace(unix.PTRACE_DETACH, uintptr(tid), 0, sig)
	now := Monotonic()
	t.released = now
	t.noteHold(now - t.missed)
}
