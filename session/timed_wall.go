//go:build linux

package session

import (
	"slices"
	"time"

	"goprof/profile"
	"goprof/sampler/look"
)

// A look of a wall-clock recording counts as long as its thread does not move, perhaps for an hour. Each second, the
// Sink gets the number of times that the look has counted. So the look's stack is kept.

// toldLook is what is kept of a look for the Sink.
type toldLook struct {
	thread profile.Thread
	frames []profile.Frame // the state first; nil if there was no room
	why    profile.Reason
	rooted bool  // in the profile, the thread's frame is above the stack
	until  int64 // the last look that the Sink got; 0 if it got none
	began  int64 // the first look
}

// rememberLook keeps a look's thread, and its stack with its state, which is in leafed.
func (w *wall) rememberLook(st *standing, snap *look.Look, stack *profile.Stack, root string) {
	if w.timed == nil {
		return
	}
	st.told = toldLook{thread: w.threadOf(snap, stack), why: stack.Truncated, rooted: root != "", began: snap.When}
	w.keepFrames(st)
}

// keepFrames keeps the frames in leafed, if there is room.
func (w *wall) keepFrames(st *standing) {
	if n := len(w.leafed.Frames); w.timed.frames+n <= maxKeptFrames {
		st.told.frames = slices.Clone(w.leafed.Frames)
		w.timed.frames += n
	}
}

// forgetLook frees what rememberLook kept.
func (w *wall) forgetLook(st *standing) {
	if w.timed != nil {
		w.timed.frames -= len(st.told.frames)
		st.told.frames = nil
	}
}

// tellLooks reports to the Sink how often a look has counted since the last report: looks in its state, and looks while
// its thread was ready to run. The kernel reports late which looks were of the second kind. So too many looks of the
// first kind may have been reported. Then fewer looks are reported as ready to run, so that the sum is right. If looks
// of the second kind are not wanted, fewer of the thread's next looks in the state are reported.
func (w *wall) tellLooks(st *standing, looks int64, d time.Duration, ready int64, readyTime time.Duration) {
	if w.timed == nil || st.lost != profile.Whole {
		return
	}
	if st.idle || !w.wants(st.state) {
		looks, d = 0, 0
	}
	if !w.wants(profile.Runnable) {
		ready, readyTime = 0, 0
	}
	if looks < 0 && w.wants(profile.Runnable) {
		ready, readyTime, looks, d = ready+looks, readyTime+d, 0, 0
	}
	some := w.tellLook(st, st.state, looks, d)
	if w.tellLook(st, profile.Runnable, ready, readyTime) || some {
		st.told.until = st.tally.Last()
	}
}

// wants reports whether looks at threads in this state are samples.
func (w *wall) wants(state profile.State) bool {
	return w.opt.States == nil || w.opt.States(state)
}

// maxOwing bounds the threads in untold.
const maxOwing = 1 << 16

// untold is the correction of a thread's next looks in one state.
type (
	threadState struct {
		tid   int
		state profile.State
	}
	untold struct {
		looks int64
		time  time.Duration
	}
)

// tellLook hands looks at a thread in one state to the Sink, corrected by untold. It returns false if none remain.
func (w *wall) tellLook(st *standing, state profile.State, looks int64, d time.Duration) bool {
	t := w.timed
	who := threadState{st.tid, state}
	if rest, ok := t.untold[who]; ok {
		looks, d = looks+rest.looks, d+rest.time
		delete(t.untold, who)
	}
	if looks <= 0 {
		if looks == 0 && d == 0 {
			return false
		}
		if t.untold == nil || len(t.untold) >= maxOwing {
			t.untold = make(map[threadState]untold)
		}
		t.untold[who] = untold{looks, d}
		return false
	}
	at := st.told.began
	if st.told.until != 0 {
		at = min(st.told.until+int64(w.opt.Interval), st.tally.Last())
	}
	t.sample = profile.Sample{At: t.clock.at(at), Thread: st.told.thread, Stack: w.toldStack(st, state), State: state,
		Count: looks, Wall: true, Span: max(d, 0), Event: w.part, Link: linkOf(&st.context),
		WakerLink: st.waker}
	t.sink.Sample(&t.sample)
	return true
}

// toldStack returns the stack of a look as the profile has it, with the state as its leaf.
func (w *wall) toldStack(st *standing, state profile.State) *profile.Stack {
	s := &w.timed.stack
	if st.told.frames == nil {
		*s = w.profile.StackAt(st.at, st.told.rooted, s.Frames[:0])
	} else {
		s.Frames = append(s.Frames[:0], st.told.frames...)
		s.Truncated = st.told.why
	}
	if len(s.Frames) > 0 && state != st.state {
		s.Frames[0].Func = w.frame(state, "")
	}
	return s
}
