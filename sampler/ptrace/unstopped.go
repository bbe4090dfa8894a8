//go:build linux

package ptrace

import (
	"golang.org/x/sys/unix"

	"goprof/process/procfs"
	"goprof/sampler/look"
)

// unstoppedTries is how often a look is tried. A look is void if the thread runs meanwhile.
const unstoppedTries = 3

// LookUnstopped looks at a blocked thread without stopping it. The kernel reports the thread's stack pointer and pc,
// but not the frame pointer, so snap.Regs holds no other register. Then LookUnstopped copies the stack. If the thread
// has not run in between, its registers and its stack are the same. So its state, CPU time and the number of the
// thread's turns on a CPU must be the same before and after. Otherwise the look is void and is repeated.
//
// A thread that is running cannot be looked at in this way: the outcome is Running.
func (t *Tracer) LookUnstopped(tid int, hint Hint, snap *look.Look) Outcome {
	return t.LookUnstoppedDuring(tid, hint, snap, nil)
}

// LookUnstoppedDuring is LookUnstopped with a function during, which reads more of the thread. The look counts only if
// the thread has not run by the end of during. The last try leaves out during, to be shorter.
func (t *Tracer) LookUnstoppedDuring(tid int, hint Hint, snap *look.Look,
	during func(*look.Look)) Outcome {
	snap.TID = tid
	if o := t.leavesAlone(tid); o != Taken {
		return o
	}
	if !t.openReader() {
		return Failed
	}
	t.lookTID = tid
	t.pin()
	defer t.unpin()
	f := followed{t.proc, tid, noFollowed}
	defer f.close()
	for try := range unstoppedTries {
		before, ok := f.motion()
		if !ok {
			return t.gone()
		}
		switch before.State {
		case 'R':
			t.unstopped.motion = before
			return Running
		case 'Z', 'X':
			return t.ended(tid)
		}
		o := t.readUnstopped(tid, &f, &hint)
		if late := t.readsCameBack(tid); late != Taken {
			return late
		}
		if o != Taken {
			if o == Running {
				t.Voids++
				continue // the thread woke up just now
			}
			return o
		}
		late := t.keepUnstopped(snap, &hint)
		snap.Waiting.Reset()
		if during != nil && late == Taken {
			t.readWaiting(snap)
			if try < unstoppedTries-1 {
				during(snap)
			}
			if late = t.readsCameBack(tid); late != Taken {
				return late
			}
		}
		after, ok := f.motion()
		if !ok {
			return t.gone()
		}
		if before == after {
			snap.Waiting.State, snap.Waiting.Unstopped = before.State, true
			t.unstopped.motion = after
			return Taken
		}
		t.Voids++
		if late != Taken {
			return late // no other read may begin
		}
	}
	return Moved
}

// Motion returns the Motion of the thread at the last look without a stop.
func (t *Tracer) Motion() Motion { return t.unstopped.motion }

// keepUnstopped keeps what was read. The copy of the stack is complete, even if a read of After is late.
func (t *Tracer) keepUnstopped(snap *look.Look, hint *Hint) Outcome {
	t.fill(snap.TID, hint, snap)
	snap.Regs[t.cpu.SP], snap.Regs[t.cpu.PC] = t.look.sp, t.unstopped.pc
	snap.Syscall = t.unstopped.call
	t.released = snap.When
	t.after(snap, StandsStill)
	return t.readsCameBack(snap.TID)
}

// readUnstopped reads pc and sp from the kernel, and the stack. The caller checks whether the thread moved meanwhile.
func (t *Tracer) readUnstopped(tid int, f *followed, hint *Hint) Outcome {
	b := f.read(fileSyscall)
	if b == nil {
		if t.proc.LastCPU(tid) < 0 {
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
	t.look = pauseLeft{when: Monotonic(), sp: sp}
	t.copyStack(tid, hint)
	t.prepareContext()
	if hint.Pointer != 0 {
		t.copyContext(tid, hint.Pointer)
	}
	return Taken
}

// followed is a thread whose files stay open during a look.
type followed struct {
	proc *procfs.Dir
	tid  int
	fds  [numFollowed]int
}

// The files of the thread.
const (
	fileStat = iota
	fileSchedstat
	fileSyscall
	fileStatus

	numFollowed
)

var followedNames = [numFollowed]string{"stat", "schedstat", "syscall", "status"}

var noFollowed = [numFollowed]int{-1, -1, -1, -1}

func (f *followed) close() {
	for _, fd := range f.fds {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// read reads one of the files. The first read opens the file. read returns nil if that fails.
func (f *followed) read(which int) []byte {
	if f.fds[which] < 0 {
		fd, err := f.proc.Open(f.tid, followedNames[which])
		if err != nil {
			return nil
		}
		f.fds[which] = fd
	}
	return f.proc.ReadFD(f.fds[which])
}

// Motion is what changes when a thread runs.
type Motion struct {
	State    byte
	CPU      int // the CPU that the thread last ran on
	Ticks    uint64
	Charged  procfs.Schedstat
	Switches uint64 // how often the thread gave up its CPU or lost it; 0 if Charged is known
}

// motion returns the thread's Motion. Without schedstat it uses counts of switches instead.
func (f *followed) motion() (m Motion, ok bool) {
	stat, _ := procfs.ParseStat(f.read(fileStat))
	m.State, m.CPU, m.Ticks = stat.State, stat.CPU, stat.Ticks
	if m.State == 0 {
		return m, false
	}
	m.Charged, ok = procfs.ParseSchedstat(f.read(fileSchedstat))
	if !ok || m.Charged.Turns == 0 {
		m.Switches = procfs.StatusSwitches(f.read(fileStatus))
	}
	return m, true
}
