//go:build linux

package ptrace

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// This file is what happens while a thread stands still. Every function is nosplit and
// calls only such ones; signals are blocked around them (a SIGURG is how Go's scheduler
// interrupts a loop, a SIGPROF how its profiler does); nothing is allocated.

// state is what waitid tells of a tracee.
type state uint8

const (
	running state = iota // or asleep: it has not stopped
	stopped
	ended
	lost // it is not our tracee, or no longer by this number
)

// stop tells tid to stop and waits for it, but only where that is soon: a thread on another CPU
// stops within some microseconds, so we ask again and again for up to 40. A thread on
// our own CPU cannot stop before we leave it, and one that has no CPU or is in a long
// system call takes its time: these become pending at once, and the sampler's next sleep, one
// for all of them, lets them come. Sleeping here for each would cost a round of the
// scheduler's queue each time, with the thread standing still.
//
//go:nosplit
func (t *Tracer) stop(tid int, elsewhere bool) (state, uintptr) {
	t.missed = Monotonic(&t.ts)
	t.readUntil = t.missed + readLimit
	ptrace(unix.PTRACE_INTERRUPT, uintptr(tid), 0, 0) // if this failed, peek says why
	end := t.missed
	if elsewhere {
		end += int64(pollFor)
	}
	for {
		now := Monotonic(&t.ts)
		if s, sig := t.peek(tid); s != running {
			return s, sig
		}
		t.missed = now
		if now >= end {
			return running, 0
		}
	}
}

// peek asks what tid does, and for a stop which signal is on its way to it.
//
// Three stops look alike and are told apart by si_status (ptrace(2)): the one that we
// asked for (SIGTRAP with PTRACE_EVENT_STOP in the second byte), a group stop (SIGSTOP
// and its like with the same event: the thread was stopped before us and is again once
// we let go), and a signal about to be delivered (no event). The last is as good a
// moment to look as any: the thread stands exactly where the signal met it. We take
// what we came for and let go with that signal, which delivers it with its siginfo;
// our own stop, still on its way, is cancelled by letting go (kernel/ptrace.c,
// __ptrace_unlink).
//
//go:nosplit
func (t *Tracer) peek(tid int) (state, uintptr) {
	if e := waitPeek(tid, &t.info); e != 0 {
		return lost, 0
	}
	if t.info.pid == 0 {
		return running, 0
	}
	switch t.info.code {
	case cldTrapped, cldStopped:
		if t.info.status>>8 == 0 {
			return stopped, uintptr(t.info.status)
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
}

// copyStack copies the stack from look.sp to its top, or as much as the limit allows, and
// in the same system call, before it, the piece that the hint asks for. A stack pointer
// outside the thread's own stack is on another one (a signal's, a coroutine's), of which nothing
// is known: then the own one is copied beside.
//
//go:nosplit
func (t *Tracer) copyStack(tid int, hint *Hint) {
	l := &t.look
	top := hint.StackTop
	known := top > l.sp && l.sp >= hint.StackLow
	limit := min(t.StackLimit, len(t.desk.stack))
	l.want = min(unknownStack, limit)
	if known {
		l.want = limit
		if rest := top - l.sp; rest < uint64(l.want) {
			l.want = int(rest)
		}
	}
	d := t.desk
	d.set(1, &d.stack[0], l.sp, l.want)
	if hint.Side != 0 && hint.SideLen > 0 && hint.SideLen <= MaxSide {
		d.set(0, &d.side[0], hint.Side, hint.SideLen)
		if n := t.fetch(tid, 0, 2); n > hint.SideLen {
			l.side, l.got = hint.SideLen, n-hint.SideLen
			t.copyFollowed(tid, hint)
		}
	}
	if l.got == 0 { // nothing else was asked for, or it is not there any more
		l.got = t.fetch(tid, 1, 1)
	}
	l.cut = l.got == l.want && (!known || l.sp+uint64(l.got) < top)
	if hint.StackLow != 0 && !known {
		t.copyUnder(tid, hint)
	}
}

// copyFollowed copies what a pointer in the side piece points at. It is nil but for moments of a thread's
// life, so this costs a system call in few pauses.
//
//go:nosplit
func (t *Tracer) copyFollowed(tid int, hint *Hint) {
	l, d := &t.look, t.desk
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

// copyUnder copies the thread's own stack while it is on another one: from the lowest word there that
// points into the own one. That is the stack pointer with which the signal's handler will go back, or
// lies below it.
//
//go:nosplit
func (t *Tracer) copyUnder(tid int, hint *Hint) {
	l, d := &t.look, t.desk
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

// getPAC reads which bits of a code address are its signature. They are the same for all
// threads of a process (they follow from the width of its addresses), so once is enough. A CPU
// without pointer authentication answers EINVAL: no bits.
//
//go:nosplit
func (t *Tracer) getPAC(tid int) {
	t.pacVec.Len = uint64(unsafe.Sizeof(t.pac))
	e := ptrace(unix.PTRACE_GETREGSET, uintptr(tid), ntARMPACMask, uintptr(unsafe.Pointer(&t.pacVec)))
	t.pacDue = e == unix.ESRCH
}

// release lets tid go on, with the signal that was on its way to it.
//
//go:nosplit
func (t *Tracer) release(tid int, sig uintptr) {
	t.look.letGo = ptrace(unix.PTRACE_DETACH, uintptr(tid), 0, sig)
	now := Monotonic(&t.ts)
	t.released = now
	t.Pauses.Add(now - t.missed)
}
