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

// A look of a wall-clock recording counts as long as its thread does not move. So it is walked once, its place in the
// profile is kept, and it is counted there again by its Tally.

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
	waker   profile.Link // of the thread that ended the wait
	began   int64        // when the look was taken, or the wait began

	// What of the tally has been counted.
	looks, readyLooks int64
	time, readyTime   time.Duration

	told toldLook // kept for the Sink
	over bool     // where wakers are wanted: it is known what ended the wait, or never will be
}

// wall is a recording of wall-clock time, with the last looks at all threads.
type wall struct {
	*recording
	waits    bool // only waits count, and their leaves say for what
	switches bool // looks come from the kernel's records of switches
	of       map[int]*standing
	frames   map[stateFrame]*profile.Func
	leafed   profile.Stack
	moved    profile.Stack // reused: see move
	rests    nativeRests
	asked    map[int]int // how often a thread was to be stopped again
	others   int64       // looks at threads in states that are not wanted
	idle     int64       // looks at the JVM's own threads while these were idle, and not wanted

	idleThreads map[int]bool

	// Of the look that is taken.
	state profile.State
	what  string
	isOwn bool // it is of a thread of the JVM's own that is idle

	part    *profile.EventKind // what its looks say; nil if the recording has one part
	gathers *safepoints        // the safepoints that are watched; nil if none are
	wakers  *wakers            // nil if they are not wanted
}

// stateFrame is the leaf of a stack.
type stateFrame struct {
	state profile.State
	what  string
}

// maxStateFrames bounds the leaves that are kept: classes come and go.
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

// wanted reports whether a look needs its stack. It first settles the look before at the same thread.
func (w *wall) wanted(snap *look.Look) bool {
	if old := w.of[snap.TID]; old != nil {
		w.wakers.close(old)
		w.settle(old)
		w.forgetLook(old)
		delete(w.of, snap.TID)
	}
	// A wait of a thread that lost its CPU is over when it is reported. Its state is known without a stack.
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
		snap.Tally.Void() // the stop that would have shown the stack was lost on its way
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
	return !w.waits || w.state != profile.Running // else it woke up right before it was stopped for --native-once
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
		leaf.Sure = stack.Frames[0].Sure // the frame of a state hides the method that is asked about
	}
	w.leafed.Truncated = stack.Truncated
	w.leafed.Frames = append(append(w.leafed.Frames[:0], leaf), stack.Frames...)
}

// ownGap returns where frames were left out of the stack of a Java thread of the JVM's own. It is -1 for other threads.
func (w *wall) ownGap(tid int, stack *profile.Stack) int {
	if !w.dir.isVMJavaThread(tid) {
		return -1
	}
	return unwind.UnstoppedGap(stack)
}

// mostAsked bounds how often a thread is stopped again if a stop for its native frames showed none.
const mostAsked = 3

// keepLook keeps a look, and counts it as often as its Tally says by now.
func (w *wall) keepLook(st *standing) {
	w.of[st.tid] = st
	w.settle(st)
}

// settle counts a look as often as its tally has grown since it was settled last.
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

// countAgain counts further looks at a thread in that state, if the state is wanted.
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

// settleAll brings the profile up to date, and drops the looks at threads that are gone.
func (w *wall) settleAll() {
	maps.DeleteFunc(w.of, func(tid int, st *standing) bool {
		before := st.looks + st.readyLooks
		w.settle(st)
		if st.looks+st.readyLooks != before || w.dir.threads[tid] != nil {
			return false
		}
		w.wakers.close(st)
		w.settle(st)
		st.tally.Void() // if the thread lives after all, it is looked at again
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
			Thinned: o.Thinned, Limit: o.Limit, Dropped: o.Dropped}
	}
}
