//go:build linux

package session

import (
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"time"

	"goprof/process/procfs"
	"goprof/profile"
	"goprof/profile/naming"
	"goprof/sampler"
	"goprof/unwind"
	"goprof/vmstructs"
)

// A wall-clock recording also counts virtual threads without a carrier. The engine cannot see them: no thread of the
// kernel has their stacks. So goprof draws some of them by lot from the heap (vmstructs.VirtualSampler), several times
// a second, between two walks. Each drawn thread counts for all the threads that it stands for, and for the time since
// the last draw.

const (
	// drawEvery is the mean time between two draws. A draw comes at a random moment, so no program runs in step with
	// draws. drawMost is how many threads a draw visits.
	drawEvery = 100 * time.Millisecond
	drawMost  = 64
	// drawAgain is the time until the next draw after a draw failed because a collector was at work.
	drawAgain = 20 * time.Millisecond
	// endDraws bounds how long the last draw is retried.
	endDraws = 500 * time.Millisecond
	// drawShare bounds draws to 1/drawShare of a CPU, beyond drawFree: the first walks read the program's code.
	drawShare = 50
	drawFree  = 100 * time.Millisecond
	// drawSeldom is the time between two checks whether a JVM without virtual threads has some now.
	drawSeldom = time.Second
	// drawLimit bounds the time of a draw. No looks are walked until it is over.
	drawLimit = 500 * time.Millisecond
	// longestDrawn bounds how late a draw may be and still stand for the delay. If goprof had no CPU for longer, nothing
	// is known about the rest.
	longestDrawn = 10 * time.Second
)

// unmounted counts virtual threads without a carrier.
type unmounted struct {
	*wall
	lots   *vmstructs.VirtualSampler
	reader *vmstructs.Continuations
	timer  *time.Timer
	began  time.Time
	cost   time.Duration // CPU time of all draws
	at     int64         // the time until then is accounted for
	left   time.Duration // time after at that is not accounted for, because draws did not reach all threads
	waits  time.Duration // planned since at
	owed   float64       // fractions of looks that have not counted yet
	stack  profile.Stack
	told   profile.VirtualLooks
	passed time.Duration // the time that all draws stand for
	last   float64       // number of threads at the last draw
	sum    float64       // number of threads, times the seconds that they count for
	// Sums over all looks: the threads that each stands for, times the intervals that it counts for; and their squares.
	counted, squares float64
	spent, spent2    float64 // the same for the seconds that each look stands for
	failed           error   // of the last draw
	some             bool    // some draw did not visit all threads
}

// newUnmounted returns nil if the JVM has no virtual threads that could be read.
func newUnmounted(w *wall) *unmounted {
	reader := w.VM.NewContinuations()
	lots := vmstructs.NewVirtualSampler(reader)
	if lots == nil {
		return nil
	}
	lots.Blockers, lots.Names = w.waits, w.opt.Threads || w.opt.Sink != nil || w.opt.Wants != nil
	reader.ReadFrom(w.Session.timed(findLimit))
	_ = lots.Prepare() // if it fails, so do the draws
	return &unmounted{wall: w, lots: lots, reader: reader, timer: time.NewTimer(time.Hour)}
}

// begin is called just before the first look.
func (u *unmounted) begin() {
	if u != nil {
		u.at, u.began = now(), time.Now()
		u.drawIn(time.Duration(rand.Int64N(int64(drawEvery))))
	}
}

func (u *unmounted) drawIn(wait time.Duration) {
	u.waits += wait
	u.timer.Reset(wait)
}

func (u *unmounted) due() <-chan time.Time {
	if u == nil {
		return nil
	}
	return u.timer.C
}

// next makes a draw, and decides when the next one is due.
func (u *unmounted) next() {
	u.draw()
	wait, share := u.habits.draw, drawShare*u.habits.draw/drawEvery
	if u.moved() {
		wait = drawAgain
	}
	wait = max(wait, (u.cost-drawFree)*share-time.Since(u.began))
	if !u.switches {
		wait = max(wait, u.opt.Interval)
	}
	if u.told.Draws == 0 && !u.moved() {
		wait = max(wait, drawSeldom)
	}
	u.drawIn(time.Duration((0.5 + rand.Float64()) * float64(wait)))
}

// moved reports whether a draw failed because a collector was at work.
func (u *unmounted) moved() bool { return errors.Is(u.failed, vmstructs.ErrMoved) }

// end makes the last draw, for the rest of the time. If it fails, as many looks count as lost as the previous draw
// stood for.
func (u *unmounted) end() {
	if u == nil {
		return
	}
	u.timer.Stop()
	for began := time.Now(); ; time.Sleep(drawAgain / 2) {
		if u.draw(); u.failed == nil && u.left == 0 {
			return
		}
		if u.failed != nil && !u.moved() || time.Since(began) > endDraws {
			break
		}
	}
	if u.last == 0 && !u.dir.mayCarry() {
		return // most likely there are no virtual threads
	}
	if u.failed == nil || u.moved() {
		u.fail("a collector was at work until the end", 1)
	}
	u.lose(profile.Moved, u.last, time.Duration(now()-u.at)+u.left)
}

// lose counts as lost the looks that so many threads would have had in this time.
func (u *unmounted) lose(why profile.Reason, threads float64, of time.Duration) {
	if !u.switches {
		u.profile.Lose(why, int64(threads*float64(of)/float64(max(u.opt.Interval, 1))))
	}
}

// draw draws virtual threads without a carrier, and counts each of them.
func (u *unmounted) draw() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := sampler.ThreadCPU()
	defer func() { u.cost += sampler.ThreadCPU() - before }()
	var platform []vmstructs.Thread
	for _, th := range u.dir.threads {
		if th.java.Addr != 0 {
			platform = append(platform, th.java)
		}
	}
	began := now()
	late := u.late(began)
	passed := time.Duration(began-u.at) - late + u.left
	threads := 0.0
	limited := u.Session.timed(drawLimit)
	u.reader.ReadFrom(limited)
	var lot vmstructs.VirtualSample
	var err error
	proc := procfs.OpenDir(u.Process.PID())
	defer proc.Close()
	u.whileResting(u.reader, proc, func() {
		lot, err = u.lots.Draw(platform, drawMost, func(v *vmstructs.VirtualThread, stands float64) {
			if (v.Err != nil || !v.Mounted) && u.wantsThread(v) {
				threads += stands
				u.take(v, stands, passed, began)
			}
		})
	})
	for why, n := range lot.Failed {
		u.fail("a list of threads: "+why, int64(n))
	}
	if err != nil && limited.ended() {
		err = limited.over // nothing was read any more, which looks as if a collector were at work
	}
	switch u.failed = err; {
	case err != nil:
		// The next draw also stands for this time.
		if !u.moved() {
			u.fail(unwind.WhyUnread(err), 1)
		}
	case lot.Threads > 0 || lot.Untracked > 0:
		u.told.Draws++
		u.told.Most = max(u.told.Most, int64(math.Round(threads/(1-min(lot.Left, 0.9)))))
		u.told.Untracked = max(u.told.Untracked, lot.Untracked)
		fallthrough
	default:
		if late > 0 && lot.Threads > 0 {
			u.fail("no draw for too long", 1)
			u.lose(profile.Stale, threads, late)
		}
		u.at, u.waits, u.left = began, 0, time.Duration(lot.Left*float64(passed))
		u.passed += passed - u.left
		u.sum += threads * passed.Seconds()
		u.last = lot.Threads
	}
}

// late returns how much of the time before a draw the draw does not stand for.
func (u *unmounted) late(began int64) time.Duration {
	return max(0, time.Duration(began-u.at)-u.waits-longestDrawn)
}

// fail notes why threads may be missing.
func (u *unmounted) fail(why string, n int64) {
	if u.told.Unread == nil {
		u.told.Unread = map[string]int64{}
	}
	if _, known := u.told.Unread[why]; !known && len(u.told.Unread) >= maxUnread {
		why = "other reasons"
	}
	u.told.Unread[why] += n
}

// maxUnread bounds the reasons that are kept: some contain an address.
const maxUnread = 16

// wantsThread reports whether the user has chosen the thread. A thread that could not be read counts as chosen.
func (u *unmounted) wantsThread(v *vmstructs.VirtualThread) bool {
	if u.opt.Wants == nil || v.Err != nil {
		return true
	}
	label := virtualLabel(profile.VirtualThread{ID: v.ID, Name: v.Name})
	return u.opt.Wants(label[1 : len(label)-1])
}

// several: a look that stands for more threads than this also stands for other threads. It is more than 1 because the
// JDK's lists change while they are counted.
const several = 1.1

// take counts a virtual thread that was drawn by lot at the time when. stands is the number of threads that it stands
// for, during the time passed since the last draw. Its stack is walked and added to the profile, unless its state is
// not wanted. If the thread could not be read, its samples count as lost.
func (u *unmounted) take(v *vmstructs.VirtualThread, stands float64, passed time.Duration, when int64) {
	w := u.wall
	intervals := float64(passed) / float64(max(w.opt.Interval, 1))
	if w.switches {
		intervals = 1 / stands // its samples are waits: how many waits there were in this time is not known
	}
	u.owed += stands * intervals
	n := int64(u.owed)
	u.owed -= float64(n)
	if v.Err != nil {
		w.profile.Lose(profile.Moved, n)
		u.fail(unwind.WhyUnread(v.Err), 1)
		return
	}
	u.stack.Frames = u.stack.Frames[:0]
	u.stack.Truncated = profile.Whole
	if len(v.Stack.Chunks) > 0 {
		w.Walker.WalkContinuation(v.Stack, &u.stack)
	}
	w.state, w.what = stateOfUnmounted(v.State, &u.stack), ""
	if w.state == profile.Parked {
		w.what = naming.ClassOf(v.For)
	}
	if !w.wants(w.state) {
		w.others += n
		return
	}
	u.counted += stands * intervals
	u.squares += stands * stands * intervals
	spent := stands * passed.Seconds()
	u.spent, u.spent2, u.some = u.spent+spent, u.spent2+spent*spent, u.some || stands > several
	if w.opt.SureLeaf {
		u.stack.Settle()
	}
	if w.opt.HideInternal {
		w.folder.Stack(&u.stack)
	}
	root := ""
	if w.opt.Threads {
		if root = w.pool(w.labels.of(profile.VirtualThread{ID: v.ID, Name: v.Name})); stands > several {
			root = naming.PoolLabel(root) // it also stands for other threads
		}
	}
	u.told.Looks++
	w.putLeaf(&u.stack)
	d := time.Duration(stands * float64(passed))
	w.profile.AddAt(root, &w.leafed, n, d)
	if t := w.timed; t != nil {
		t.sample = profile.Sample{At: t.clock.at(when), Stack: &w.leafed, State: w.state, Count: n, Wall: true, Span: d,
			Thread: profile.Thread{Virtual: true, JavaID: int64(v.ID), JavaName: v.Name}, Event: w.part}
		t.sink.Sample(&t.sample)
	}
}

// account returns the account of virtual threads without a carrier. It is nil if there were none.
func (u *unmounted) account() *profile.VirtualLooks {
	if u == nil || u.told.Draws == 0 && len(u.told.Unread) == 0 {
		return nil
	}
	told := u.told
	told.CPU = u.cost
	if u.passed > 0 {
		told.Threads = u.sum / u.passed.Seconds()
	}
	if u.some {
		told.Error = math.Sqrt(u.spent2) / max(u.spent, 1e-9) // twice the standard deviation of a share of one half
	}
	return &told
}

// effective returns profile.Summary.Effective for so many samples. 0: each sample counts fully.
func (u *unmounted) effective(samples int64) int64 {
	if u == nil || u.squares <= u.counted {
		return 0
	}
	n := float64(samples)
	return max(int64(n*n/(n-u.counted+u.squares)), 1)
}

// stateOfUnmounted returns what a virtual thread without a carrier did, by its state and its stack. A thread that is
// ready to run waits for a carrier.
func stateOfUnmounted(state string, stack *profile.Stack) profile.State {
	switch state {
	case "blocked":
		return profile.Blocked
	case "waiting", "timed-waiting":
		return profile.Waiting
	case "parked", "timed-parked":
		return parkedIn(stack)
	}
	return profile.Runnable
}

// parkedIn returns what a virtual thread is parked for. The JDK also parks a virtual thread that sleeps, or waits for a
// socket or a file.
func parkedIn(stack *profile.Stack) profile.State {
	for i := range stack.Frames {
		switch name := stack.Frames[i].Func.Name; {
		case vmstructs.WaitOfMethod(name) == vmstructs.WaitsForTime:
			return profile.Sleeping
		case vmstructs.WaitsForSocket(name):
			return profile.Socket
		case !naming.Waits(name):
			return profile.Parked
		}
	}
	return profile.Parked
}
