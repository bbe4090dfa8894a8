//go:build linux

package session

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process"
	"goprof/process/procfs"
	"goprof/profile"
	"goprof/profile/naming"
	"goprof/profile/pools"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
	"goprof/vmstructs"
)

// Live follows all threads of a process in repeated readings: each thread's CPU time, its state, and its present
// method. It stops no thread. A thread that has not been on a CPU since its last look has not moved, and is not looked
// at again. A running thread has no stack here: samples show where it is.
//
// A Live needs a session of its own, and belongs to the goroutine of the session.
type Live struct {
	session *Session
	proc    *procfs.Dir
	waits   *vmstructs.Waits
	known   map[int]*liveThread
	round   int
	named   time.Time
	turn    []*liveThread // the threads to look at in this reading
	looks   []*look.Look

	observer   *ptrace.Observer   // nil: there is none yet
	leftBehind []*ptrace.Observer // those whose reads have not returned
}

type LiveThread struct {
	TID  int
	Name string
	Java bool
	CPU  time.Duration // that it has used since it began
	// State is what the thread did at its last look: for Java threads a profile.State, for others the kernel's word.
	State string
	// Frame is the topmost Java method at the last look, which was at Seen (by goprof's clock); see naming.TopJava. It is
	// empty if there was none, or if all looks found the thread running.
	Frame string
	Seen  time.Time
	// Idle says that the thread waited for work at the last look: see package pools.
	Idle bool
	// Moving: the thread ran at its last look, or has run since. Samples may show its method.
	Moving bool
}

type liveThread struct {
	LiveThread
	round   int
	ran     procfs.Schedstat
	looked  bool // since it last moved
	waiting int  // readings since a look was due

	chances   ptrace.Chances   // used up if its memory failed to answer too often
	waitedFor *ptrace.Observer // the Observer whose last read of its memory did not return in time
}

const (
	// lookBatch is the number of looks that are taken before they are walked. Each holds the copy of a stack.
	lookBatch = 128
	// liveStack bounds how much of a stack is copied, and liveDepth how many frames are walked: the topmost Java frame
	// lies near the top.
	liveStack = 32 << 10
	liveDepth = 64
	// mostLooks bounds the looks of one reading. Threads that are left out come first in the next one.
	mostLooks = 512
	// lookTime bounds the CPU time that the looks of a reading may take.
	lookTime = 6 * time.Millisecond
	// namesEvery is how often the names of all threads are read. Names of new threads are read at once.
	namesEvery = 5 * time.Second
)

// NewLive prepares to follow the threads.
func (s *Session) NewLive() *Live {
	return &Live{session: s, proc: procfs.OpenDir(s.Process.PID()), waits: s.VM.NewWaits(false).ReadFrom(s.memory),
		known: map[int]*liveThread{}}
}

// Close gives back what Live holds. The session stays open.
func (l *Live) Close() {
	l.proc.Close()
	if l.observer != nil {
		l.observer.Close()
	}
}

// Read lists all threads. With all, it looks at every resting thread, however long that takes. An error says that the
// process is gone, or that its memory does not answer.
func (l *Live) Read(all bool) ([]LiveThread, error) {
	s := l.session
	s.Walker.MaxDepth = liveDepth
	var err error
	if !s.guarded(func() {
		if err = l.list(all); err != nil && len(s.dir.threads) == 0 {
			return
		}
		err = s.Process.Alive()
		l.update()
		l.lookAround(all)
	}) {
		return nil, process.ErrSilent
	}
	if err != nil {
		return nil, err
	}
	threads := make([]LiveThread, 0, len(l.known))
	for _, tid := range s.dir.tids() {
		if th := l.known[tid]; th != nil {
			threads = append(threads, th.LiveThread)
		}
	}
	return threads, nil
}

// list lists the threads. It reads names seldom: they are most of the cost, and programs seldom rename threads.
func (l *Live) list(all bool) error {
	if all || time.Since(l.named) >= namesEvery {
		l.named = time.Now()
		return l.session.dir.refresh()
	}
	return l.session.dir.update(false)
}

// update reads the kernel's and the JVM's facts of each thread, and finds the threads that have moved.
func (l *Live) update() {
	l.round++
	l.turn = l.turn[:0]
	for tid, listed := range l.session.dir.threads {
		if listed.named.IsZero() && !l.session.dir.name(listed) {
			continue // it has ended
		}
		th := l.known[tid]
		if th == nil {
			th = &liveThread{LiveThread: LiveThread{TID: tid, Moving: true}}
			l.known[tid] = th
		}
		th.round, th.Name, th.Java = l.round, listed.name, listed.java.Addr != 0
		l.charge(th)
		if th.Java && !th.looked && !th.leftAlone() {
			l.turn = append(l.turn, th)
		}
	}
	maps.DeleteFunc(l.known, func(_ int, th *liveThread) bool { return th.round != l.round })
}

// charge reads a thread's CPU time, and finds out whether the thread may have moved.
func (l *Live) charge(th *liveThread) {
	ran, ok := procfs.ParseSchedstat(l.proc.Read(th.TID, "schedstat"))
	counts := ok && ran.Turns > 0 // otherwise the kernel has no such counts
	if counts && th.looked {
		switch {
		case ran == th.ran:
			return // it was at rest then, and has not had a CPU since
		case th.Java: // a look shows its present state
			th.ran, th.CPU, th.looked, th.Moving = ran, time.Duration(ran.Ran), false, true
			return
		}
	}
	stat, _ := procfs.ParseStat(l.proc.Read(th.TID, "stat"))
	if !counts {
		ran = procfs.Schedstat{Ran: uint64(procfs.Ticks(stat.Ticks))}
	}
	moved := ran.Ran != th.ran.Ran
	th.ran, th.CPU, th.looked = ran, time.Duration(ran.Ran), false
	switch {
	case !th.Java:
		th.State, th.Frame, th.Moving, th.looked = kernelState(stat.State), "", false, stat.State != 'R'
	case stat.State != 'R':
		th.Moving = true
	case moved:
		th.State, th.Moving = profile.Running.String(), true
	default: // it wants a CPU, and has had none since the last reading
		th.State, th.Moving = profile.Runnable.String(), true
	}
}

// lookAround looks at the threads that have moved. Those that have waited longest for a look come first.
func (l *Live) lookAround(all bool) {
	slices.SortFunc(l.turn, func(a, b *liveThread) int {
		return cmp.Or(cmp.Compare(b.waiting, a.waiting), cmp.Compare(a.TID, b.TID))
	})
	most, until := mostLooks, lookTime
	if all {
		most, until = len(l.turn), time.Hour
	}
	began := ownCPU()
	for done := 0; done < len(l.turn); {
		if done >= most || ownCPU()-began > until {
			for _, th := range l.turn[done:] {
				th.waiting++
			}
			return
		}
		batch := l.turn[done:min(done+lookBatch, len(l.turn))]
		l.lookAt(batch)
		done += len(batch)
	}
}

// lookAt looks at some threads, and walks their stacks.
func (l *Live) lookAt(batch []*liveThread) {
	for len(l.looks) < len(batch) {
		l.looks = append(l.looks, new(look.Look))
	}
	outcomes := make([]ptrace.Outcome, len(batch))
	done := 0
	for done < len(batch) && l.canLook() {
		from := done
		done += l.observer.Each(len(batch)-from, func(t *ptrace.Tracer, i int) {
			outcomes[from+i] = l.look(t, batch[from+i].TID, l.looks[from+i])
		})
		if done < len(batch) {
			outcomes[done] = l.leaveBehind(batch[done])
			done++
		}
	}
	var stack profile.Stack
	for i, th := range batch[:done] {
		l.take(th, l.looks[i], outcomes[i], &stack)
	}
}

// look looks at one thread. It runs on the Observer's OS thread.
func (l *Live) look(t *ptrace.Tracer, tid int, snap *look.Look) ptrace.Outcome {
	s := l.session
	snap.Reset()
	return t.LookUnstoppedDuring(tid, s.dir.threads[tid].hint(s.VM), snap, func(snap *look.Look) {
		snap.Waiting.Java = l.waits.Read(&snap.Snapshot, snap.Waiting.Call)
	})
}

// canLook finds an Observer. It returns false if too many Observers are waiting for reads that do not return.
func (l *Live) canLook() bool {
	if l.observer != nil {
		l.observer.Serve(l.session.memory) // a dump of the same session may have served another memory since
		return true
	}
	l.leftBehind = slices.DeleteFunc(l.leftBehind, func(o *ptrace.Observer) bool {
		if !o.IsBack() {
			return false
		}
		o.Close()
		return true
	})
	if len(l.leftBehind) >= ptrace.MostSilent {
		return false
	}
	p := l.session.Process
	l.observer = ptrace.NewObserver(p.PID(), p.CPU(), liveStack)
	l.observer.Serve(l.session.memory)
	return true
}

// leaveBehind gives up the Observer whose read of th's memory did not return in time, and returns the reason.
func (l *Live) leaveBehind(th *liveThread) ptrace.Outcome {
	th.waitedFor, l.observer = l.observer, nil
	l.leftBehind = append(l.leftBehind, th.waitedFor)
	why := th.waitedFor.Why()
	if why == ptrace.Silent {
		th.chances.Lose(now())
	}
	return why
}

// leftAlone reports whether the thread is not looked at now: a read of its memory has not returned, or too many reads
// did not return in time lately.
func (th *liveThread) leftAlone() bool {
	return th.waitedFor != nil && (th.chances.Spent(now()) || !th.waitedFor.IsBack())
}

// take sets a thread's state and topmost Java method after a look. Without a stack, it sets only what the outcome
// shows.
func (l *Live) take(th *liveThread, snap *look.Look, o ptrace.Outcome, stack *profile.Stack) {
	th.waiting = 0
	switch o {
	case ptrace.Taken:
		l.session.walk(snap, stack)
		state, _ := stateOf(&snap.Waiting, stack)
		th.State, th.looked, th.Moving = state.String(), true, false
		th.Frame = naming.TopJava(stack, state != profile.Running)
		th.Idle = pools.Look(stack.Frames, state == profile.Blocked).Doing == pools.Idle
		th.Seen = time.Now()
	case ptrace.Running:
		if th.State != profile.Runnable.String() {
			th.State = profile.Running.String()
		}
		th.Moving, th.Idle = true, false
	case ptrace.Moved:
		th.Moving = true
	}
	th.State = cmp.Or(th.State, kernelState('S'))
}

// DumpThread is a Dump of one thread. If the thread has ended, the error is process.ErrGone.
func (s *Session) DumpThread(tid int, opt DumpOptions) (profile.ThreadDump, error) {
	if opt.Depth > 0 {
		s.Walker.MaxDepth = opt.Depth
	}
	d := dumping{Session: s, byTID: map[int]int{tid: 0}, gaveUp: make(chan struct{})}
	ended := make(chan struct{})
	var err error
	if !s.guarded(func() {
		defer close(ended)
		th := s.dir.get(tid)
		if th == nil {
			err = process.ErrGone
			return
		}
		d.threads = []profile.ThreadDump{{TID: tid, Name: th.name, State: s.stateOf(th)}}
		after, trail := s.afterLook()
		s.Walker.Warm()
		looks := []ptrace.Subject{{TID: tid, Hint: th.hint(s.VM)}}
		ptrace.OnOwnThread(func() { d.lookAtAll(looks, opt, after, trail) })
	}) {
		d.giveUp(ended)
		return profile.ThreadDump{}, process.ErrSilent
	}
	if err != nil {
		return profile.ThreadDump{}, err
	}
	return d.threads[0], nil
}

// OwnMemory returns how many bytes of goprof are in memory. It is 0 if that is not known.
func OwnMemory() int64 {
	b, err := procfs.Read("/proc/self/statm", procfs.MaxFile)
	if err != nil {
		return 0
	}
	fields := bytes.Fields(b)
	if len(fields) < 2 {
		return 0
	}
	pages, _, ok := procfs.CutUint(fields[1]) // proc(5): size, resident ...
	if !ok {
		return 0
	}
	return int64(pages) * int64(unix.Getpagesize())
}

// OwnCPU returns the CPU time that goprof has used so far.
func OwnCPU() time.Duration { return ownCPU() }
