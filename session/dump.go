//go:build linux

package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"goprof/process"
	"goprof/profile"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
	"goprof/vmstructs"
)

type DumpOptions struct {
	Depth       int
	NonBlocking bool // stop no thread: running threads then have no stack
	// Gentle stops only threads that run: a stop would wake up a waiting thread. Without Gentle, a dump looks at a waiting
	// thread without a stop only if the program would notice a stop (arch.Call.GoesOn) and the stack comes out whole.
	Gentle bool
	Bare   bool // no thread is looked at: there are no stacks
	// Wait is how long the dump waits for threads that must stop but have no CPU, as long as none of them stops. It is
	// also how long the dump retries stops that are not begun because they might not end in time. 0 is DumpWait.
	Wait time.Duration
	// Locks asks for what the threads hold and wait for. No thread is stopped longer for it.
	Locks bool
	// Virtual asks for the waits of virtual threads without a carrier, too. Such threads follow the other threads in the
	// dump, if they wait or others wait for them. The dump notes in Virtual whether it has read all of them. If Virtual is
	// nil, they are left out.
	Virtual *profile.VirtualWaits
	// Find bounds each search for virtual threads: there may be millions of them. 0: three seconds.
	Find time.Duration
	// Cancel ends the dump early. Then there is no dump, and the error is the context's. Nil: nothing ends it early.
	Cancel context.Context
}

// cancelled returns why the dump must end. It is nil if it need not.
func (o *DumpOptions) cancelled() error {
	if o.Cancel == nil {
		return nil
	}
	return o.Cancel.Err()
}

// DumpWait is how long a dump waits for threads. On a machine where fifty threads want each CPU, a thread gets its CPU
// for some milliseconds five times a second.
const DumpWait = 10 * time.Second

// Dump looks once at every thread, at different moments. With ErrSilent and ErrNoLocks it returns threads, too.
func (s *Session) Dump(opt DumpOptions) ([]profile.ThreadDump, error) {
	defer runAhead()()
	if opt.Depth > 0 {
		s.Walker.MaxDepth = opt.Depth
	}
	if f := s.Frozen(); f != nil && !f.Stops() {
		opt.NonBlocking = true
	}
	d := dumping{Session: s, byTID: map[int]int{}, gaveUp: make(chan struct{}), locks: opt.Locks,
		opt: opt, frames: map[uint64][]vmstructs.LockFrame{}}
	s.Walker.KeepInterpreted = opt.Locks
	defer func() { s.Walker.KeepInterpreted = false }()
	var looks []ptrace.Subject
	var after func(*look.Look, int64)
	var trail *process.Trail
	var err error
	prepared := s.guarded(func() {
		s.awaitCollection()
		if err = s.dir.refresh(); err != nil && len(s.dir.threads) == 0 {
			return
		}
		looks, err = d.prepare(), nil
		after, trail = s.afterLook()
		if opt.Bare {
			return
		}
		s.Walker.Warm() // walks come between stops, and the first walk takes long: later stops would wait for it
	})
	if !prepared {
		return d.incomplete()
	} else if err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	looked := opt.Bare || s.guarded(func() {
		defer close(ended)
		ptrace.OnOwnThread(func() { d.lookAtAll(looks, opt, after, trail) })
	})
	if !looked {
		d.giveUp(ended)
		return d.incomplete()
	}
	if err := opt.cancelled(); err != nil {
		return nil, err
	}
	if opt.Locks {
		// The goroutine works on a copy: if the process does not answer, it may still run while the caller reads the threads.
		with, failed := d, make(chan error, 1)
		with.threads = slices.Clone(d.threads)
		if !s.guarded(func() { failed <- with.readLocks() }) {
			return d.threads, process.ErrSilent
		}
		if err = <-failed; err != nil && !errors.Is(err, ErrNoLocks) {
			return nil, err
		}
		d.threads = with.threads
	}
	if err := cmp.Or(opt.cancelled(), s.Process.Alive()); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(d.threads, func(t profile.ThreadDump) bool { return t.Err == goneErr }), err
}

// giveUp waits until no thread is stopped any more, or for the engine's limit.
func (d *dumping) giveUp(ended <-chan struct{}) {
	close(d.gaveUp)
	select {
	case <-ended:
	case <-time.After(engineLimit):
	}
}

type dumping struct {
	*Session
	threads []profile.ThreadDump
	byTID   map[int]int
	gaveUp  chan struct{} // closed when nothing waits for walks any more
	locks   bool
	opt     DumpOptions
	frames  map[uint64][]vmstructs.LockFrame // of stacks that were walked, by JavaThread
}

func (d *dumping) prepare() (looks []ptrace.Subject) {
	for _, tid := range d.dir.tids() {
		th := d.dir.threads[tid]
		looks = append(looks, ptrace.Subject{TID: tid, Hint: th.hint(d.VM)})
		d.byTID[tid] = len(d.threads)
		d.threads = append(d.threads, d.describe(th))
	}
	return looks
}

// lookAtAll looks at each thread, and looks again at those whose virtual thread was being mounted or unmounted.
func (d *dumping) lookAtAll(looks []ptrace.Subject, opt DumpOptions, after func(*look.Look, int64),
	trail *process.Trail) {
	t := ptrace.NewTracer(d.Process.PID(), d.Process.CPU())
	defer t.Close()
	t.StackLimit, t.After, t.Trail = stackLimit(opt.Depth), after, trail
	t.Serve(d.memory)
	t.Enough = func() bool { return opt.cancelled() != nil }
	for range virtualLooks {
		all := looks
		if opt.NonBlocking {
			ptrace.AllUnstopped(t, looks, d.takeUnstopped)
		} else if looks = d.gently(t, looks); !ptrace.AllUntil(d.gaveUp, t, cmp.Or(opt.Wait, DumpWait), looks, d.take) {
			return
		}
		if looks = d.inTheHeap(all); len(looks) == 0 {
			return
		}
	}
}

// gently looks at waiting threads without a stop, and returns those that must be stopped.
func (d *dumping) gently(t *ptrace.Tracer, looks []ptrace.Subject) (rest []ptrace.Subject) {
	done := map[int]bool{}
	ptrace.AllUnstopped(t, looks, func(snap *look.Look, o ptrace.Outcome) {
		if done[snap.TID] = d.opt.Gentle; !d.opt.Gentle && (o != ptrace.Taken || !d.breaksOff(snap)) {
			return
		}
		d.takeUnstopped(snap, o)
		i, ok := d.byTID[snap.TID]
		switch {
		case !ok:
		case d.opt.Gentle:
			done[snap.TID] = d.threads[i].Err == "" || d.threads[i].Err == goneErr
		default:
			done[snap.TID] = d.threads[i].Stack.Truncated == profile.Whole
		}
	})
	for _, th := range looks {
		if !done[th.TID] {
			rest = append(rest, th)
		}
	}
	return rest
}

// breaksOff reports whether a stop would end the system call of a waiting thread early. A thread that a signal has
// stopped is not in a call any more.
func (d *dumping) breaksOff(snap *look.Look) bool {
	return snap.Syscall >= 0 && snap.Waiting.State != 'T' && !d.Process.CPU().Calls[snap.Syscall].GoesOn()
}

// incomplete returns the threads of a dump whose process does not answer.
func (d *dumping) incomplete() ([]profile.ThreadDump, error) {
	for i := range d.threads {
		if t := &d.threads[i]; len(t.Stack.Frames) == 0 && t.Err == "" {
			t.Err = "the memory of its process does not answer"
		}
	}
	return d.threads, process.ErrSilent
}

// NotStopped counts the threads of a dump that were not stopped. late are those that have no stack because they did not
// stop. leftOut are those that were not told to stop because they might have been held for too long (StopsUnbounded).
// refused are those that the kernel did not let goprof trace.
func NotStopped(threads []profile.ThreadDump) (late, leftOut, refused int) {
	for i := range threads {
		switch threads[i].Err {
		case profile.StopTimeout.String(), profile.StopMissed.String():
			late++
		case profile.Unadmitted.String():
			leftOut++
		case profile.NotPermitted.String():
			refused++
		}
	}
	return late, leftOut, refused
}

// goneErr marks threads that ended during the dump: there is nothing to show of them.
var goneErr = profile.ThreadGone.String()

// take walks the stack of a look, and sets the result in the dump.
func (d *dumping) take(snap *look.Look, o ptrace.Outcome) {
	i, ok := d.byTID[snap.TID]
	if !ok {
		return
	}
	t := &d.threads[i]
	if o != ptrace.Taken && len(t.Stack.Frames) > 0 {
		return // an earlier look has given a stack
	}
	switch o {
	case ptrace.Taken:
		t.Err = ""
		d.walk(snap, &t.Stack)
		d.keepFrames(d.dir.threads[snap.TID], &t.Stack)
		t.Stack.Frames = slices.Clip(t.Stack.Frames)
	case ptrace.Running:
		t.Err = "running, and not to be stopped"
	case ptrace.Moved:
		t.Err = "it ran while it was looked at, again and again"
	default:
		t.Err = reasonOf(o).String()
	}
}

// takeUnstopped is take for a thread that was not stopped. Only its pc and sp are known.
func (d *dumping) takeUnstopped(snap *look.Look, o ptrace.Outcome) {
	if i, ok := d.byTID[snap.TID]; ok && o == ptrace.Taken {
		d.Walker.WalkUnstopped(&snap.Snapshot, &d.threads[i].Stack)
		d.keepFrames(d.dir.threads[snap.TID], &d.threads[i].Stack)
		return
	}
	d.take(snap, o)
}

// stateOf returns the thread's state as Java reports it, otherwise as the kernel does.
func (s *Session) stateOf(th *listedThread) string {
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

// kernelState returns the word for a state's letter in /proc/PID/stat (proc(5)).
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
