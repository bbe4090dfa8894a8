//go:build linux

package session

import (
	"fmt"
	"slices"
	"sort"

	"goprof/profile"
	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/sampler/offcpu"
)

// This file turns the waker of a wait into frames (sampler/offcpu/wakeups.go finds the waker). The look at the waker
// comes when the wait is over. Only then the wait counts, with all of its time, at a place with the waker's frames on
// top (profile/waker.go).

// wakers is a recording of waits that also records what ended each wait.
type wakers struct {
	*wall
	names  *kernelNames
	frames map[string]*profile.Func // frames that stand for wakers, by text
	above  []profile.Frame          // reused
	chain  chain
	sums   map[sortOfWaker]*profile.WakerSum
}

// sortOfWaker is a row of the account.
type sortOfWaker struct {
	name  string
	known bool
}

// TryWakers finds out whether the kernel reports what ends the waits of the process's threads.
func TryWakers(pid int) error {
	if _, err := openKernelNames(); err != nil {
		return err
	}
	return offcpu.TryWakers(pid)
}

// wantWakers makes w record wakers, if the options ask for them.
func (w *wall) wantWakers() {
	if !w.opt.Wakers {
		return
	}
	names, err := openKernelNames()
	if err != nil {
		names = &kernelNames{funcs: map[string]*profile.Func{}} // TryWakers has returned this error
	}
	w.wakers = &wakers{wall: w, names: names, frames: map[string]*profile.Func{},
		chain: chain{most: w.opt.Chain, of: map[*look.Tally]*hop{}}, sums: map[sortOfWaker]*profile.WakerSum{}}
	w.manner = w.wakers
}

// standingOf returns the wait that a look at a waker belongs to. It is nil if the wait is not kept.
func (w *wakers) standingOf(snap *look.Look) *standing {
	st := w.of[snap.Waker.TID]
	if st == nil || st.tally != snap.Waker.Of || st.lost != profile.Whole || st.over {
		return nil
	}
	return st
}

// wanted reports whether a look has a stack to walk. A waker that is no thread of the JVM has none. For such a waker,
// the wait ends here.
func (w *wakers) wanted(snap *look.Look) bool {
	if snap.Waker.Of == nil {
		return w.wall.wanted(snap)
	}
	st := w.standingOf(snap)
	if st == nil {
		return false
	}
	by := w.names.wakerOf(snap.Kernel, snap.Waker.PID, snap.Waker.Comm)
	switch {
	case by.kernel:
		w.wake(st, sortOfWaker{by.cause, true}, w.hop(st, snap.When, profile.WakerFrame(by.String())))
	case snap.Waker.PID != w.Process.PID():
		w.wake(st, sortOfWaker{"other processes", true},
			w.hop(st, snap.When, profile.WakerFrame(fmt.Sprintf("%s pid=%d", snap.Waker.Comm, snap.Waker.PID))))
	default:
		w.refreshHints(snap.TID)
		if snap.SP != 0 {
			return true
		}
		w.wakeByThread(st, snap, nil, "not copied", w.label(snap.TID, snap.When)) // the wait was short: see offcpu
	}
	return false
}

func (w *wakers) seen(snap *look.Look) int64 {
	if snap.Waker.Of == nil {
		return w.wall.seen(snap)
	}
	return snap.When
}

// lose counts a look whose stack is not known. Its waker is known nevertheless.
func (w *wakers) lose(snap *look.Look, why profile.Reason) {
	if snap.Waker.Of == nil {
		w.wall.lose(snap, why)
	} else if st := w.standingOf(snap); st != nil {
		w.wakeByThread(st, snap, nil, why.String(), w.label(snap.TID, snap.When))
	}
}

func (w *wakers) shape(snap *look.Look, stack *profile.Stack) bool {
	return snap.Waker.Of != nil || w.wall.shape(snap, stack)
}

// count counts a look. If it is a look at a waker, its stack is put above the wait that the waker ended.
func (w *wakers) count(snap *look.Look, stack *profile.Stack, root string) {
	if snap.Waker.Of == nil {
		w.wall.count(snap, stack, root)
		return
	}
	label := w.label(snap.TID, snap.When)
	if stack == &w.virtual {
		label = w.pool(w.labels.of(stack.Virtual))
	}
	cut := ""
	if stack.Truncated != profile.Whole {
		cut = stack.Truncated.String()
	}
	if st := w.standingOf(snap); st != nil {
		w.wakeByThread(st, snap, stack.Frames, cut, label)
	}
}

func (w *wakers) label(tid int, when int64) string {
	if th := w.dir.threads[tid]; th != nil && !th.javaNamed {
		w.dir.name(th)
	}
	return w.pool(w.dir.labelAt(tid, when))
}

// wakeByThread ends a wait whose waker is a thread of the JVM. cut is the reason why frames of the waker are missing;
// empty: none are.
func (w *wakers) wakeByThread(st *standing, snap *look.Look, frames []profile.Frame, cut, label string) {
	above := append(append(w.above[:0], w.frame(profile.WokenBy)), frames...)
	if cut != "" {
		above = append(above, w.frame("[truncated: "+cut+"]"))
	}
	w.above = append(above, w.frame(label))
	st.waker = linkOf(&snap.Context)
	slices.Reverse(w.above)
	h := &hop{above: w.above, began: st.began, end: snap.When}
	if !w.isCarrier(snap.TID) { // a virtual thread's last wait is not the carrier's
		h.before = w.chain.of[snap.Waker.After]
	}
	w.wake(st, sortOfWaker{"threads of the JVM", true}, h)
}

// hop returns the hop for a waker that is no thread of the JVM.
func (w *wakers) hop(st *standing, end int64, text string) *hop {
	return &hop{above: []profile.Frame{w.frame(text)}, began: st.began, end: end}
}

// maxWakerFrames bounds the kept frames: threads and processes come and go.
const maxWakerFrames = 1 << 14

func (w *wakers) frame(text string) profile.Frame {
	fn := profile.Cached(w.frames, maxWakerFrames, text, func() *profile.Func { return &profile.Func{Name: text} })
	return profile.Frame{Func: fn, Kind: profile.Gap, BCI: -1}
}

// wake ends a wait, and counts it.
func (w *wakers) wake(st *standing, by sortOfWaker, h *hop) {
	above := w.chain.add(st.tally, h)
	st.at, st.over = w.profile.Above(st.at, above), true
	if st.told.frames != nil {
		w.timed.frames += len(above)
		above[0].Sure = st.told.frames[0].Sure
		st.told.frames = append(slices.Clone(above), st.told.frames...)
	}
	w.settle(st)
	if !w.wants(st.state) || st.idle {
		return
	}
	sum := w.sums[by]
	if sum == nil {
		sum = &profile.WakerSum{Name: by.name, Known: by.known}
		w.sums[by] = sum
	}
	sum.Waits += st.looks
	sum.Time += int64(st.time)
}

// unknownWakers are the reasons why the waker of a wait is not known.
var unknownWakers = map[look.WaitEnd]string{
	look.GoesOn:    "not over at the end",
	look.Woken:     "record too late",
	look.TooEarly:  "begun before the recording",
	look.NotNoted:  "not noted by the kernel",
	look.WakerLost: "record lost",
}

// close is called when no more can become known of a wait.
func (w *wakers) close(st *standing) {
	if w == nil || st.over || st.lost != profile.Whole {
		return
	}
	why, asleep := unknownWakers[st.tally.Ended()]
	if !asleep {
		st.over = true
		return
	}
	w.wake(st, sortOfWaker{why, false}, w.hop(st, 0, profile.NotWokenFrame(why)))
}

func (w *wakers) end() {
	for _, st := range w.of {
		w.close(st)
		w.settle(st)
	}
}

func (w *wakers) account(sum *profile.Summary, stats *sampler.Stats) {
	w.wall.account(sum, stats)
	for _, s := range w.sums {
		sum.Wakers = append(sum.Wakers, *s)
	}
	sort.Slice(sum.Wakers, func(i, j int) bool {
		a, b := &sum.Wakers[i], &sum.Wakers[j]
		if a.Known != b.Known {
			return a.Known
		}
		return a.Time > b.Time || a.Time == b.Time && a.Name < b.Name
	})
}
