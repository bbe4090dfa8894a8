//go:build linux

package session

import (
	"maps"
	"time"

	"goprof/profile"
	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/unwind"
)

// A look of a wall-clock recording counts as long as its thread does not move. So it is walked once, and its place in
// the profile is kept. There it is counted again, by its Tally.

// standing is the last look at a thread.
type standing struct {
	tid   int
	tally *look.Tally
	lost  profile.Reason // Whole: the look is in the profile, at the place at
	at    profile.Place
	ready profile.Place // the same stack of a thread that has been woken and has no CPU yet
	state profile.State // without ready
	idle  bool          // the thread is one of the JVM's own, and such threads are not asked for

	context look.Context

	// What of the tally has been counted.
	looks, readyLooks int64
	time, readyTime   time.Duration

	told toldLook // kept for the Sink
}

// standings are the last looks at all threads.
type standings struct {
	of     map[int]*standing
	frames map[stateFrame]*profile.Func
	leafed profile.Stack
	moved  profile.Stack // reused: see move
	rests  nativeRests
	asked  map[int]int // how often a thread was to be stopped again
	others int64       // looks at threads in states that are not wanted
	idle   int64       // looks at the JVM's own threads while these were idle, and not wanted

	idleThreads map[int]bool
}

// stateFrame is the leaf of a stack.
type stateFrame struct {
	state profile.State
	what  string
}

// maxStateFrames bounds the leaves that are kept: classes come and go.
const maxStateFrames = 1 << 12

func newStandings() *standings {
	return &standings{of: map[int]*standing{}, frames: map[stateFrame]*profile.Func{},
		rests: nativeRests{}, asked: map[int]int{}, idleThreads: map[int]bool{}}
}

// frame is the leaf for a state, each made once.
func (s *standings) frame(state profile.State, what string) *profile.Func {
	key := stateFrame{state, what}
	fn := s.frames[key]
	if fn == nil {
		if len(s.frames) >= maxStateFrames {
			clear(s.frames)
		}
		fn = &profile.Func{Name: state.Label(what)}
		s.frames[key] = fn
	}
	return fn
}

// takeWall walks one snapshot of a wall-clock recording and finds its place in the profile.
func (r *recording) takeWall(snap *look.Look) {
	s := r.standings
	if old := s.of[snap.TID]; old != nil {
		r.settle(old)
		r.forgetLook(old)
		delete(s.of, snap.TID)
	}
	if r.hadNoCPU(snap) && !r.wants(profile.Runnable) {
		looks, _ := snap.Tally.Count()
		s.others += looks
		return
	}
	st := &standing{tid: snap.TID, tally: snap.Tally, context: snap.Context}
	if !r.follow(snap) {
		return
	}
	r.walkWall(snap)
	if !r.alive() {
		st.lost = profile.ProcessGone
		r.keepLook(st)
		return
	}
	if !r.proven(snap, snap.Tally.Last()) {
		snap.Tally.Void()
		st.lost = profile.Stale
		r.keepLook(st)
		return
	}
	if !snap.Waiting.Unstopped && snap.Waiting.State != 'R' {
		s.rests.note(r.Session, &snap.Snapshot, &r.stack)
	}
	state, what := stateOf(&snap.Waiting, &r.stack)
	if r.opt.Mode != WaitingMode {
		what = ""
	} else if state == profile.Running {
		return // it woke up right before it was stopped for --native-once
	}
	stack, root := r.subject(snap)
	st.idle = r.opt.LeaveIdle && isIdleOwn(state, r.ownGap(snap.TID), &r.stack)
	if r.opt.SureLeaf {
		stack.Settle()
	}
	if r.opt.HideInternal {
		r.folder.Stack(stack)
	}
	st.state = state
	leaf := profile.Frame{Func: s.frame(state, what), Kind: profile.StateFrame, BCI: -1}
	if len(stack.Frames) > 0 {
		leaf.Sure = stack.Frames[0].Sure // the frame of a state hides the method that is asked about
	}
	s.leafed.Truncated = stack.Truncated
	s.leafed.Frames = append(append(s.leafed.Frames[:0], leaf), stack.Frames...)
	st.at = r.profile.AddAt(root, &s.leafed, 0, 0)
	r.rememberLook(st, snap, stack, root)
	r.keepLook(st)
}

// hadNoCPU reports whether the kernel's record of a switch says that the thread's CPU was taken from it. Such a wait is
// over when it is told, and no stack is needed to know its state.
func (r *recording) hadNoCPU(snap *look.Look) bool {
	return r.opt.Mode == WaitingMode && r.opt.Engine == PerfEngine && snap.Waiting.NoCPU
}

// ownGap is where frames were left out of a stack, if its thread is a Java thread of the JVM's own; else -1.
func (r *recording) ownGap(tid int) int {
	if !r.dir.isVMJavaThread(tid) {
		return -1
	}
	return unwind.UnstoppedGap(&r.stack)
}

// walkWall walks a snapshot by what is known of its registers.
func (r *recording) walkWall(snap *look.Look) {
	switch {
	case !snap.Waiting.Unstopped:
		r.Walker.Walk(&snap.Snapshot, &r.stack)
	case snap.SP == 0: // nothing was looked at
		r.stack = profile.Stack{Frames: r.stack.Frames[:0], Truncated: profile.NotStopped}
	default:
		r.Walker.WalkUnstopped(&snap.Snapshot, &r.stack)
		r.standings.rests.complete(r.Session, &snap.Snapshot, &r.stack)
		if s := r.standings; r.opt.NativeOnce && unwind.UnstoppedGap(&r.stack) >= 0 && s.asked[snap.TID] < mostAsked {
			s.asked[snap.TID]++
			snap.Tally.Void() // the stop that would have shown the stack was lost on its way
		}
	}
}

// mostAsked is how often a thread is stopped again because a stop for its native frames brought none.
const mostAsked = 3

// keepLook keeps a look, and counts it as often as its Tally says by now.
func (r *recording) keepLook(st *standing) {
	r.standings.of[st.tid] = st
	r.settle(st)
}

// settle counts a look as often as its tally has grown since it was settled last.
func (r *recording) settle(st *standing) {
	looks, d := st.tally.Count()
	ready, readyTime := st.tally.CountReady()
	if st.lost != profile.Whole {
		r.profile.Lose(st.lost, looks+ready-st.looks-st.readyLooks)
	} else {
		r.countAgain(st, st.state, st.at, looks-st.looks, d-st.time)
		if ready != st.readyLooks {
			if st.readyLooks == 0 {
				st.ready = r.profile.Beside(st.at, r.standings.frame(profile.Runnable, ""), profile.StateFrame)
			}
			r.countAgain(st, profile.Runnable, st.ready, ready-st.readyLooks, readyTime-st.readyTime)
		}
	}
	r.tellLooks(st, looks-st.looks, d-st.time, ready-st.readyLooks, readyTime-st.readyTime)
	st.looks, st.time, st.readyLooks, st.readyTime = looks, d, ready, readyTime
}

// countAgain counts looks at a thread in that state, if it is wanted.
func (r *recording) countAgain(st *standing, state profile.State, at profile.Place, looks int64, d time.Duration) {
	switch {
	case !r.wants(state):
		r.standings.others += looks
		return
	case st.idle && state == st.state:
		r.standings.idle += looks
		if looks > 0 {
			r.standings.idleThreads[st.tid] = true
		}
		return
	}
	r.profile.Again(at, looks, d)
	r.contexts.count(st.context.State, looks)
	r.sampled[st.tid] = r.sampled[st.tid] || looks > 0
}

// settleAll brings the profile up to date, and drops the looks at threads that are gone.
func (r *recording) settleAll() {
	maps.DeleteFunc(r.standings.of, func(tid int, st *standing) bool {
		before := st.looks + st.readyLooks
		r.settle(st)
		if st.looks+st.readyLooks != before || r.dir.threads[tid] != nil {
			return false
		}
		st.tally.Void() // if the thread lives after all, it is looked at anew
		r.forgetLook(st)
		return true
	})
	maps.DeleteFunc(r.standings.rests, func(tid int, _ []nativeRest) bool { return r.dir.threads[tid] == nil })
	maps.DeleteFunc(r.standings.asked, func(tid, _ int) bool { return r.dir.threads[tid] == nil })
}

// looks is the account of how threads were looked at.
func (r *recording) looks(stats *sampler.Stats) *profile.Looks {
	l := &stats.Looks
	return &profile.Looks{
		Unstopped: l.Unstopped, Stopped: l.Stopped, AtRest: l.AtRest, Asleep: l.Asleep, Repeated: l.Repeated,
		Moved: l.Voids, Running: l.Running, Others: r.standings.others,
		Idle: r.standings.idle, IdleThreads: len(r.standings.idleThreads), Time: r.profile.Time,
		NonBlocking: r.opt.NonBlocking,
	}
}
