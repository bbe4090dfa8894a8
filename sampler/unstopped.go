//go:build linux

package sampler

import "goprof/target"

// unstoppedTries is how often a look is repeated that the thread has spoilt by running.
const unstoppedTries = 3

// LookUnstopped looks at a thread that is blocked without stopping it. The kernel tells
// its stack pointer and pc (snap.Regs holds no other register; the frame pointer is not to
// be had so) and its stack is copied meanwhile. A thread that has not run in between cannot
// have changed either, so state, CPU time and the number of its turns on a CPU must be the
// same before and after; otherwise the look is void and is repeated.
//
// A thread that is running cannot be looked at in this way: Running.
func (t *Tracer) LookUnstopped(tid int, hint Hint, snap *target.Snapshot) Outcome {
	snap.TID = tid
	t.prepare(snap)
	for range unstoppedTries {
		before, ok := t.proc.trace(tid)
		if !ok {
			return t.gone()
		}
		if before.state == 'R' {
			return Running
		}
		if before.state == 'Z' || before.state == 'X' {
			if o := t.gone(); o == ProcessGone {
				return o
			}
			return Zombie
		}
		if o := t.readUnstopped(tid, &hint); o != Taken {
			if o == Running {
				continue // it woke up just now
			}
			return o
		}
		after, ok := t.proc.trace(tid)
		if !ok {
			return t.gone()
		}
		if before != after {
			continue
		}
		t.keepStack(snap)
		t.keepUnder(snap)
		t.keepSide(snap, &hint)
		clear(snap.Regs[:])
		snap.Regs[t.cpu.SP], snap.Regs[t.cpu.PC] = t.look.sp, t.unstopped.pc
		snap.SP, snap.Cut = t.look.sp, t.look.cut
		snap.Syscall, snap.When = t.unstopped.call, t.look.when
		snap.PACMask = t.pac[1]
		t.released = snap.When
		t.after(snap)
		return Taken
	}
	return Moved
}

func (t *Tracer) readUnstopped(tid int, hint *Hint) Outcome {
	b := t.proc.read(tid, "syscall")
	if b == nil {
		if t.proc.lastCPU(tid) < 0 {
			return t.gone()
		}
		return NotPermitted
	}
	call, sp, pc, ok := parseSyscall(b)
	if !ok {
		return Running
	}
	t.unstopped.call, t.unstopped.pc = call, pc
	t.look = look{when: monotonic(&t.ts), sp: sp}
	t.copyStack(tid, hint)
	return Taken
}

// trace is what changes when a thread runs.
type trace struct {
	state    byte
	ticks    uint64
	stat     schedstat
	switches uint64
}

// trace reads it. Where the kernel keeps no schedstat, switch counts stand in for it.
func (p *procDir) trace(tid int) (tr trace, ok bool) {
	tr.state, _, tr.ticks = parseStat(p.read(tid, "stat"))
	if tr.state == 0 {
		return tr, false
	}
	tr.stat, ok = parseSchedstat(p.read(tid, "schedstat"))
	if !ok || tr.stat.turns == 0 {
		b := p.read(tid, "status")
		own, _ := leadingUint(field(b, "\nvoluntary_ctxt_switches:\t"))
		forced, _ := leadingUint(field(b, "\nnonvoluntary_ctxt_switches:\t"))
		tr.switches = own + forced
	}
	return tr, true
}
