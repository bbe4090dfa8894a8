package postmortem

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"goprof/process"
	"goprof/profile"
	"goprof/unwind"
	"goprof/vmstructs"
)

// Options say which facts about the threads are wanted.
type Options struct {
	Depth   int
	Locks   bool // what they hold and wait for
	Virtual bool // also virtual threads without a carrier
}

// Dump walks all threads. The thread that died comes first.
func (j *JVM) Dump(opt Options) (*profile.Dump, error) {
	if opt.Depth > 0 {
		j.Walker.MaxDepth = opt.Depth
	}
	j.Walker.KeepInterpreted = opt.Locks
	d := &dump{JVM: j, byAddr: map[uint64]int{}, frames: map[uint64][]vmstructs.LockFrame{}}
	version := j.VM.Version()
	d.out = &profile.Dump{PID: j.Core.PID(), Version: version.JDK(), Core: &profile.Core{}}
	d.out.VM, _, _ = strings.Cut(version.Info, " (")
	d.out.MainClass, _, _ = strings.Cut(strings.TrimSpace(j.VM.JavaCommand()), " ")
	d.walkAll()
	if opt.Virtual {
		if err := d.virtual(); errors.Is(err, process.ErrFault) { // others may be readable nevertheless
			d.out.Virtual = &profile.VirtualCensus{Unread: map[string]int{named(err, "the lists of them").Error(): 1}}
		} else if err != nil {
			return nil, err
		}
	}
	if opt.Locks {
		if err := d.locks(); err != nil {
			return nil, named(err, "locks")
		}
	}
	d.core()
	return d.out, nil
}

type dump struct {
	*JVM
	out    *profile.Dump
	byAddr map[uint64]int // the index in out.Threads, by JavaThread
	frames map[uint64][]vmstructs.LockFrame
	kept   int // number of frames in all stacks
}

func (d *dump) walkAll() {
	d.Walker.Warm()
	var snap process.Snapshot
	var stack profile.Stack
	d.out.Threads = make([]profile.ThreadDump, 0, len(d.threads))
	for i := range d.threads {
		t := &d.threads[i]
		d.snapshot(t, d.Walker.MaxDepth, &snap)
		d.Walker.Walk(&snap, &stack)
		td := d.describe(t)
		if !d.keep(&td, &stack) {
			stack.Frames = stack.Frames[:0]
		}
		if t.java.Addr != 0 {
			d.byAddr[t.java.Addr] = len(d.out.Threads)
			d.keepFrames(t, &stack)
		} else if td.Name == "" {
			td.Name = nameOfStack(&stack)
		}
		d.out.Threads = append(d.out.Threads, td)
	}
}

// keep gives a thread its stack, if there is still room for it.
func (d *dump) keep(t *profile.ThreadDump, stack *profile.Stack) bool {
	if d.kept += len(stack.Frames); d.kept > maxFrames {
		t.Err = fmt.Sprintf("not shown: the stacks have more than %d frames together", maxFrames)
		return false
	}
	return unwind.CopyStack(t, stack)
}

// maxFrames bounds the frames of all stacks together, of 40 bytes each: in a malicious core file, all threads may have
// the same long stack. A JVM of ten thousand threads has half a million.
const maxFrames = 2 << 20

// describe fills in the facts about a thread, except its stack.
func (d *dump) describe(t *coreThread) profile.ThreadDump {
	td := profile.ThreadDump{TID: t.TID, CPU: t.CPU, Java: t.java.Addr != 0 && !t.java.Compiler, Address: t.java.Addr}
	if t.TID == d.out.PID {
		td.CPU = 0 // the kernel reports the CPU time of all threads as the leader's
	}
	if t.java.Addr == 0 {
		if t.TID == d.out.PID {
			td.Name, _ = d.Core.Command()
		}
		return td
	}
	td.State = d.stateOf(t.java)
	td.Name, _ = d.VM.ThreadName(t.java)
	if facts, err := d.VM.ThreadFacts(t.java); err == nil {
		td.JavaID, td.Daemon, td.Priority, td.System = facts.ID, facts.Daemon, facts.Priority, facts.System
	}
	return td
}

func (d *dump) stateOf(t vmstructs.Thread) string {
	if t.Compiler {
		if what, ok := d.VM.Compiling(t); ok {
			return "compiling " + what
		}
	}
	status, err := d.VM.ThreadStatus(t)
	if err != nil {
		status = ""
	}
	return cmp.Or(status, t.State.String())
}

// nameOfStack names a thread of the JVM itself after its C++ class, which its stack shows: no note of a core holds the
// names of threads.
func nameOfStack(s *profile.Stack) string {
	for i := len(s.Frames) - 1; i >= 0; i-- {
		f := s.Frames[i].Func
		if f == nil || s.Frames[i].Kind != profile.Native {
			continue
		}
		if class, ok := vmstructs.ClassOfThread(f.Name); ok {
			return class
		}
	}
	return ""
}

// virtual adds the virtual threads without a carrier.
func (d *dump) virtual() error {
	if d.conts == nil {
		return ErrNoVirtual
	}
	platform, err := d.VM.Threads()
	if err != nil {
		return err
	}
	var all []profile.ThreadDump
	d.out.Virtual = &profile.VirtualCensus{}
	err = d.Walker.DumpUnmounted(d.conts, platform, &all, d.out.Virtual, d.keep)
	profile.OrderVirtual(all)
	d.out.Threads = append(d.out.Threads, all...)
	return err
}
