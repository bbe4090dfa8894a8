//go:build linux

package sampler

import (
	"golang.org/x/sys/unix"

	"goprof/process"
	"goprof/process/procfs"
)

// unstoppedTries is how often a look is repeated that the thread has spoilt by running.
const unstoppedTries = 3

// LookUnstopped looks at a thread that is blocked without stopping it. The kernel tells
// its stack pointer and pc (snap.Regs holds no other register; the frame pointer is not to
// be had so) and its stack is copied meanwhile. A thread that has not run in between cannot
// have changed either, so state, CPU time and the number of its turns on a CPU must be the
// same before and after; otherwise the look is void and is repeated.
//
// A thread that is running cannot be looked at in this way: Running.
func (t *Tracer) LookUnstopped(tid int, hint Hint, snap *process.Snapshot) Outcome {
	return t.lookUnstopped(tid, hint, snap, nil)
}

// lookUnstopped is LookUnstopped that reads more of the thread while it is known not to move: during does
// that. The last try goes without, to be done sooner.
func (t *Tracer) lookUnstopped(tid int, hint Hint, snap *process.Snapshot, during func(*process.Snapshot)) Outcome {
	snap.TID = tid
	if t.leavesAlone(tid) {
		return Silent
	}
	if !t.openDesk() {
		return Failed
	}
	t.lookTID = tid
	t.meet()
	defer t.part()
	f := t.proc.follow(tid)
	defer f.close()
	for try := range unstoppedTries {
		before, ok := t.proc.trace(&f)
		if !ok {
			return t.gone()
		}
		switch before.state {
		case 'R':
			t.unstopped.trace = before
			return Running
		case 'Z', 'X':
			return t.ended(tid)
		}
		o := t.readUnstopped(tid, &f, &hint)
		if !t.heard(tid) {
			return Silent
		}
		if o != Taken {
			if o == Running {
				t.Voids++
				continue // it woke up just now
			}
			return o
		}
		t.keepUnstopped(snap, &hint)
		snap.Waiting.Reset()
		if during != nil {
			t.readWaiting(snap)
			if try < unstoppedTries-1 {
				during(snap)
			}
			if !t.heard(tid) {
				return Silent
			}
		}
		after, ok := t.proc.trace(&f)
		if !ok {
			return t.gone()
		}
		if before == after {
			snap.Waiting.State, snap.Waiting.Unstopped = before.state, true
			t.unstopped.trace = after
			return Taken
		}
		t.Voids++
	}
	return Moved
}

// keepUnstopped makes a snapshot of what was read.
func (t *Tracer) keepUnstopped(snap *process.Snapshot, hint *Hint) {
	t.keepStack(snap)
	t.keepUnder(snap)
	t.keepSide(snap, hint)
	t.keepTrail(snap)
	clear(snap.Regs[:])
	snap.Regs[t.cpu.SP], snap.Regs[t.cpu.PC] = t.look.sp, t.unstopped.pc
	snap.SP, snap.Cut = t.look.sp, t.look.cut
	snap.Syscall, snap.When = t.unstopped.call, t.look.when
	snap.PACMask = t.pac[1]
	t.released = snap.When
	t.after(snap, StandsStill)
	t.heard(snap.TID)
}

func (t *Tracer) readUnstopped(tid int, f *followed, hint *Hint) Outcome {
	b := t.proc.readKept(f, fileSyscall)
	if b == nil {
		if t.proc.lastCPU(tid) < 0 {
			return t.gone()
		}
		return NotPermitted
	}
	u := &t.unstopped
	var sp uint64
	var ok bool
	if u.call, u.args, sp, u.pc, ok = procfs.ParseSyscall(b); !ok {
		return Running
	}
	t.beginReads()
	t.look = look{when: monotonic(&t.ts), sp: sp}
	t.copyStack(tid, hint)
	return Taken
}

// followed is a thread whose files are kept open for a look.
type followed struct {
	tid int
	fds [numFollowed]int
}

// Which file of it.
const (
	fileStat = iota
	fileSchedstat
	fileSyscall
	fileStatus

	numFollowed
)

var followedNames = [numFollowed]string{"stat", "schedstat", "syscall", "status"}

func (p *procDir) follow(tid int) followed { return followed{tid, [numFollowed]int{-1, -1, -1, -1}} }

func (f *followed) close() {
	for _, fd := range f.fds {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// readKept reads one of a thread's files, which is opened at the first time; nil if that fails.
func (p *procDir) readKept(f *followed, which int) []byte {
	if f.fds[which] < 0 {
		fd, err := p.open(f.tid, followedNames[which])
		if err != nil {
			return nil
		}
		f.fds[which] = fd
	}
	return p.pread(f.fds[which])
}

// trace is what changes when a thread runs.
type trace struct {
	state    byte
	cpu      int // the one that it last ran on
	ticks    uint64
	stat     procfs.Schedstat
	switches uint64
}

// trace reads it. Where the kernel keeps no schedstat, switch counts stand in for it.
func (p *procDir) trace(f *followed) (tr trace, ok bool) {
	stat, _ := procfs.ParseStat(p.readKept(f, fileStat))
	tr.state, tr.cpu, tr.ticks = stat.State, stat.CPU, stat.Ticks
	if tr.state == 0 {
		return tr, false
	}
	tr.stat, ok = procfs.ParseSchedstat(p.readKept(f, fileSchedstat))
	if !ok || tr.stat.Turns == 0 {
		tr.switches = procfs.StatusSwitches(p.readKept(f, fileStatus))
	}
	return tr, true
}
