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

// A look of a wall-clock recording counts as long as its thread does not move. So it is walked once. Its place in the
// profile is kept, and the look is counted again there, as often as its Tally says.

// standing is the last look at a thread.
type standing struct {
	tid   int
	tally *look.Tally
	lost  profile.Reason // Whole: the look is in the profile, at place at
	at    profile.Place
	ready profile.Place // the same stack, of a thread that is awake but has no CPU yet
	state profile.State // without regard to ready
	idle  bool          // the thread is an idle thread of the JVM itself, and such threads are not asked for

	context look.Context
	waker   profile.Link // of the thread that ended the wait
	began   int64        // when the look was taken, or the wait began

	// How much of the tally was counted so far.
	looks, readyLooks int64
	time, readyTime   time.Duration

	told toldLook // kept for the Sink
	over bool     // if wakers are wanted: what ended the wait is known, or will never be known
}

// wall is a wall-clock recording, with the last look at each thread.
type wall struct {
	*recording
	waits    bool // only waits count, and their leaves show what for
	switches bool // looks come from the kernel's records of switches
	of       map[int]*standing
	frames   map[stateFrame]*profile.Func
	leafed   profile.Stack
	moved    profile.Stack // reused: see move
	rests    nativeRests
	asked    map[int]int // how often a thread was asked to be stopped again
	others   int64       // looks at threads in unwanted states
	idle     int64       // looks at idle threads of the JVM itself that were not wanted

	idleThreads map[int]bool

	// Facts of the present look.
	state profile.State
	what  string
	isOwn bool // its thread is an idle thread of the JVM itself

	part    *profile.EventKind // the kind of its looks; nil if the recording has one part
	gathers *safepoints        // the watched safepoints; nil if none are watched
	wakers  *wakers            // nil if wakers are not wanted
}

// stateFrame is the leaf of a stack.
type stateFrame struct {
	state profile.State
	what  string
}

// maxStateFrames bounds the kept leaves: classes come and go.
const maxStateFrames = 1 << 12

func newWall(r *recording) *wall {
	w := &wall{recording: r, of: map[int]*standing{}, frames: map[stateFrame]*profile.Func{},
		rests: nativeRests{}, asked: map[int]int{}, idleThreads: map[int]bool{}}
	if r.opt.Part != "" {
		w.part = &profile.EventKind{Name: r.opt.Part, Unit: profile.WallTime}
	}
	return w
}

// frame returns the function of the leaf for a state.
func (w *wall) frame(state profile.State, what string) *profile.Func {
	return profile.Cached(w.frames, maxStateFrames, stateFrame{state, what}, func() *profile.Func {
		return &profile.Func{Name: state.Label(what)}
	})
}

func (w *wall) together() int              { return 1 }
func (w *wall) seen(snap *look.Look) int64 { return snap.Tally.Last() }

// wanted reports whether a look needs its stack. It first settles the previous look at the same thread.
func (w *wall) wanted(snap *look.Look) bool {
	if old := w.of[snap.TID]; old != nil {
		w.wakers.close(old)
		w.settle(old)
		w.forgetLook(old)
		delete(w.of, snap.TID)
	}
	// When the kernel reports that a thread had lost its CPU, that wait is over. Its state is known without a stack.
	if w.switches && snap.Waiting.NoCPU && !w.wants(profile.Runnable) {
		looks, _ := snap.Tally.Count()
		w.others += looks
		return false
	}
	return w.follow(snap)
}

// walked completes the stack of a look without a stop.
func (w *wall) walked(snap *look.Look, stack *profile.Stack) {
	if !snap.Waiting.Unstopped || snap.SP == 0 {
		return
	}
	w.rests.complete(w.Session, &snap.Snapshot, stack)
	if w.opt.NativeOnce && unwind.UnstoppedGap(stack) >= 0 && w.asked[snap.TID] < mostAsked {
		w.asked[snap.TID]++
		snap.Tally.Void() // the stop that would have shown the stack was lost
	}
}

func (w *wall) lose(snap *look.Look, why profile.Reason) {
	if why == profile.Stale {
		snap.Tally.Void()
	}
	w.keepLook(&standing{tid: snap.TID, tally: snap.Tally, context: snap.Context, lost: why})
}

func (w *wall) shape(snap *look.Look, stack *profile.Stack) bool {
	if !snap.Waiting.Unstopped && snap.Waiting.State != 'R' {
		w.rests.note(w.Session, &snap.Snapshot, stack)
	}
	w.state, w.what = stateOf(&snap.Waiting, stack)
	if !w.waits {
		w.what = ""
	}
	w.isOwn = w.opt.LeaveIdle && isIdleOwn(w.state, w.ownGap(snap.TID, stack), stack)
	return !w.waits || w.state != profile.Running // otherwise it woke up right before its stop for --native-once
}

func (w *wall) count(snap *look.Look, stack *profile.Stack, root string) {
	st := &standing{tid: snap.TID, tally: snap.Tally, context: snap.Context, began: snap.When, state: w.state,
		idle: w.isOwn}
	w.putLeaf(stack)
	st.at = w.profile.AddAt(root, &w.leafed, 0, 0)
	w.rememberLook(st, snap, stack, root)
	w.keepLook(st)
}

// putLeaf sets leafed to a stack with the state as its leaf.
func (w *wall) putLeaf(stack *profile.Stack) {
	leaf := profile.Frame{Func: w.frame(w.state, w.what), Kind: profile.StateFrame, BCI: -1}
	if len(stack.Frames) > 0 {
		leaf.Sure = stack.Frames[0].Sure // the state's frame hides the method that Sure is about
	}
	w.leafed.Truncated = stack.Truncated
	w.leafed.Frames = append(append(w.leafed.Frames[:0], leaf), stack.Frames...)
}

// ownGap returns the index at which frames were left out of the stack of a Java thread of the JVM itself. It is -1 for
// other threads.
func (w *wall) ownGap(tid int, stack *profile.Stack) int {
	if !w.dir.isVMJavaThread(tid) {
		return -1
	}
	return unwind.UnstoppedGap(stack)
}

// mostAsked bounds how often a thread is stopped again if a stop for its native frames showed none.
const mostAsked = 3

// keepLook keeps a look, and counts it as often as its Tally says so far.
func (w *wall) keepLook(st *standing) {
	w.of[st.tid] = st
	w.settle(st)
}

// settle counts a look as often as its tally has grown since the last settle.
func (w *wall) settle(st *standing) {
	if w.wakers != nil && !st.over && st.lost == profile.Whole {
		return // its place is not known yet
	}
	looks, d := st.tally.Count()
	ready, readyTime := st.tally.CountReady()
	if st.lost != profile.Whole {
		w.profile.Lose(st.lost, looks+ready-st.looks-st.readyLooks)
	} else {
		w.countAgain(st, st.state, st.at, looks-st.looks, d-st.time)
		if ready != st.readyLooks {
			if st.readyLooks == 0 {
				st.ready = w.profile.Beside(st.at, w.frame(profile.Runnable, ""), profile.StateFrame)
			}
			w.countAgain(st, profile.Runnable, st.ready, ready-st.readyLooks, readyTime-st.readyTime)
		}
	}
	w.tellLooks(st, looks-st.looks, d-st.time, ready-st.readyLooks, readyTime-st.readyTime)
	st.looks, st.time, st.readyLooks, st.readyTime = looks, d, ready, readyTime
}

// countAgain counts further looks at a thread in the given state, if the state is wanted.
func (w *wall) countAgain(st *standing, state profile.State, at profile.Place, looks int64, d time.Duration) {
	switch {
	case !w.wants(state):
		w.others += looks
		return
	case st.idle && state == st.state:
		w.idle += looks
		if looks > 0 {
			w.idleThreads[st.tid] = true
		}
		return
	}
	w.profile.Again(at, looks, d)
	w.contexts.count(st.context.State, looks)
	w.sampled[st.tid] = w.sampled[st.tid] || looks > 0
}

// settleAll updates the profile, and drops the looks at threads that are gone.
func (w *wall) settleAll() {
	maps.DeleteFunc(w.of, func(tid int, st *standing) bool {
		before := st.looks + st.readyLooks
		w.settle(st)
		if st.looks+st.readyLooks != before || w.dir.threads[tid] != nil {
			return false
		}
		w.wakers.close(st)
		w.settle(st)
		st.tally.Void() // if the thread still lives, it will be looked at again
		w.forgetLook(st)
		return true
	})
	maps.DeleteFunc(w.rests, func(tid int, _ []nativeRest) bool { return w.dir.threads[tid] == nil })
	maps.DeleteFunc(w.asked, func(tid, _ int) bool { return w.dir.threads[tid] == nil })
}

func (w *wall) account(sum *profile.Summary, stats *sampler.Stats) {
	l := &stats.Looks
	sum.Looks = &profile.Looks{
		Unstopped: l.Unstopped, Stopped: l.Stopped, AtRest: l.AtRest, Asleep: l.Asleep, Repeated: l.Repeated,
		Moved: l.Voids, Running: l.Running, Others: w.others,
		Idle: w.idle, IdleThreads: len(w.idleThreads), Time: w.profile.Time,
		NonBlocking: w.opt.NonBlocking,
	}
	sum.RateLowered = w.rateLowered(stats)
	sum.Virtual = w.unmounted.account()
	if !w.switches {
		sum.Effective = w.unmounted.effective(sum.Samples)
	}
	if w.gathers != nil {
		sum.Safepoints = w.gathers.account(&stats.Gathered)
	}
	if w.switches {
		o := &stats.OffCPU
		sum.Switches = &profile.Switches{Waits: o.Waits, Short: o.Short, ShortFor: o.ShortFor,
			Thinned: o.Thinned, Limit: o.Limit, Dropped: o.Dropped, Missed: o.Missed}
	}
}
