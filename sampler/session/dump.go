//go:build linux

package session

import (
	"fmt"
	"slices"

	"goprof/profile"
	"goprof/sampler"
	"goprof/target"
)

// DumpOptions say how to look at all threads.
type DumpOptions struct {
	Depth       int
	NonBlocking bool // stop no thread: running threads then have no stack
}

// Dump looks once at every thread, each for its own moment.
func (s *Session) Dump(opt DumpOptions) ([]profile.ThreadDump, error) {
	if opt.Depth > 0 {
		s.walker.MaxDepth = opt.Depth
	}
	if err := s.dir.refresh(); err != nil && len(s.dir.threads) == 0 {
		return nil, err
	}
	d := dump{Session: s, byTID: map[int]int{}}
	var looks []sampler.Target
	for _, tid := range s.dir.tids() {
		th := s.dir.threads[tid]
		looks = append(looks, sampler.Target{TID: tid, Hint: th.hint(s.VM)})
		d.byTID[tid] = len(d.threads)
		d.threads = append(d.threads, profile.ThreadDump{TID: tid, Name: th.name, State: s.stateOf(th)})
	}
	s.walker.Warm() // walks come between stops, and those that come late would wait for the first
	sampler.OnOwnThread(func() {
		t := sampler.NewTracer(s.Process.PID(), s.Process.CPU())
		defer t.Close()
		t.StackLimit = stackLimit(opt.Depth)
		t.After, t.Trail = s.afterLook()
		for range virtualLooks {
			if opt.NonBlocking {
				sampler.AllUnstopped(t, looks, d.takeUnstopped)
			} else {
				sampler.All(t, looks, d.take)
			}
			if looks = d.inTheHeap(looks); len(looks) == 0 {
				break
			}
		}
	})
	if err := s.Process.Alive(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(d.threads, func(t profile.ThreadDump) bool { return t.Err == goneErr }), nil
}

// dump is a Dump under way.
type dump struct {
	*Session
	threads []profile.ThreadDump
	byTID   map[int]int
}

// goneErr marks threads that ended meanwhile: there is nothing to show of them.
var goneErr = profile.ThreadGone.String()

func (d *dump) take(snap *target.Snapshot, o sampler.Outcome) {
	i, ok := d.byTID[snap.TID]
	if !ok {
		return
	}
	t := &d.threads[i]
	if o != sampler.Taken && len(t.Stack.Frames) > 0 {
		return // a look before this one has come to more
	}
	switch o {
	case sampler.Taken:
		d.walker.Walk(snap, &t.Stack)
		t.Stack.Frames = slices.Clip(t.Stack.Frames)
	case sampler.Running:
		t.Err = "running, and not to be stopped"
	case sampler.Moved:
		t.Err = "it ran while it was looked at, again and again"
	default:
		t.Err = reasonOf(o).String()
	}
}

// takeUnstopped walks a look at a thread that was not stopped: only its pc and sp are
// known.
func (d *dump) takeUnstopped(snap *target.Snapshot, o sampler.Outcome) {
	if i, ok := d.byTID[snap.TID]; ok && o == sampler.Taken {
		d.walker.WalkUnstopped(snap, &d.threads[i].Stack)
		return
	}
	d.take(snap, o)
}

// stateOf is the thread's state as Java says it, else the kernel's.
func (s *Session) stateOf(th *thread) string {
	if th.java.Addr == 0 {
		return kernelState(th.kernel.State)
	}
	if th.java.Compiler {
		if what, ok := s.VM.Compiling(th.java); ok {
			return "compiling " + what
		}
	}
	if state, err := s.VM.ThreadStatus(th.java); err == nil && state != "" {
		return state
	}
	return th.java.State.String()
}

// kernelState puts the letter of /proc/PID/stat into a word (proc(5)).
func kernelState(c byte) string {
	switch c {
	case 'R':
		return "running"
	case 'S':
		return "sleeping"
	case 'D':
		return "disk sleep"
	case 'T':
		return "stopped"
	case 't':
		return "traced"
	case 'Z', 'X':
		return "ended"
	case 'I':
		return "idle"
	}
	return fmt.Sprintf("state %q", c)
}
