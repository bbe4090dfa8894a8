//go:build linux

package session

import (
	"time"

	"goprof/profile"
	"goprof/sampler/look"
)

// A recording is a sum. A caller that also wants each sample with its time gives Record a Sink. A Sink is called where
// stacks are walked, never while a thread is stopped.

// Sink gets the samples of a recording one by one. All calls of one recording come from one goroutine. Of its
// arguments, a Sink may keep only Funcs and names.
type Sink interface {
	// Begin is called first, with what is known of the recording at that time.
	Begin(at profile.Instant, m profile.Meta)
	// Sample is called for each sample when it is counted. Samples are not ordered by time. The sum of their Looks is the
	// number of samples of the profile. In wall-clock modes, a Sample stands for all looks of about a second at a thread
	// that has not moved, and At is the time of the first look.
	Sample(s *profile.Sample)
	// ThreadStart and ThreadEnd are called when the list of threads, which is read about once a second, has a new thread
	// or no longer has an old one. ThreadStart is not called for threads that existed before the recording. It is called
	// later if a thread has no Java name yet: at the next Tick, at the thread's end, or at the recording's end.
	ThreadStart(at profile.Instant, t profile.Thread)
	ThreadEnd(at profile.Instant, t profile.Thread)
	// Tick is called about once a second, with the number of Java threads.
	Tick(at profile.Instant, javaThreads int)
}

// telling is what a recording with a Sink needs.
type telling struct {
	sink   Sink
	clock  clock
	sample profile.Sample // reused: a new one for each call would be on the heap
	stack  profile.Stack  // of the present look, with its leaf
	begun  int64          // when the first sample could be handed over, CLOCK_MONOTONIC
	frames int            // kept for looks that continue
	untold map[threadState]untold
	named  int // new threads whose names were read since the last tick
	// starts are those of threads without a Java name. The kernel gives a new thread the name of the thread that made it,
	// and the JVM changes that name when the thread runs (javaThread.cpp, JavaThread::thread_main_inner).
	starts map[*listedThread]profile.Instant
}

const (
	// maxKeptFrames bounds the frames that are kept for looks that continue, of 48 bytes each. The stacks of further looks
	// come from the profile, which has no line numbers.
	maxKeptFrames = 1 << 19
	// maxNewNames bounds how many new threads' names are read in a second. The names of other threads are read when they
	// are sampled.
	maxNewNames = 64
)

// beginTimed starts handing samples to the Sink, if there is one. Threads that are already listed have not just
// started.
func (r *recording) beginTimed() {
	r.dir.watch = nil
	if r.opt.Sink == nil {
		return
	}
	r.timed = &telling{sink: r.opt.Sink, begun: now(), clock: clock{ticks: int64(r.timeOffset)}}
	r.timed.clock.refresh()
	r.timed.sink.Begin(r.timed.clock.at(now()), r.profile.Meta)
	r.dir.watch = r.tellThread
}

// tick gives the Sink the time and the number of Java threads. Afterwards, nameNew may read maxNewNames more names.
func (r *recording) tick() {
	t := r.timed
	if t == nil {
		return
	}
	t.clock.refresh()
	t.named = 0
	r.tellStarts()
	java := 0
	for _, th := range r.dir.threads {
		if th.java.Addr != 0 {
			java++
		}
	}
	t.sink.Tick(t.clock.at(now()), java)
}

// tellThread reports that a thread started or ended. A listing can miss a thread while others end (fs/proc/base.c,
// proc_task_readdir). So a thread that is listed late may have begun before the recording. Such a thread counts as
// present from the start. A thread that ends before its beginning can be read counts as new.
func (r *recording) tellThread(th *listedThread, ended bool) {
	t := r.timed
	if ended {
		t.tellStart(th)
		t.sink.ThreadEnd(t.clock.at(now()), th.at(now()))
		return
	}
	if th.kernel.Start == 0 {
		if k, err := r.dir.p.Thread(th.kernel.TID); err == nil {
			th.kernel = k
		}
	}
	if th.kernel.Start != 0 && !r.beganAfter(th.kernel.TID, t.begun) {
		return
	}
	if t.starts == nil {
		t.starts = map[*listedThread]profile.Instant{}
	}
	t.starts[th] = t.clock.at(now())
	if r.nameNew(th); th.javaNamed {
		t.tellStart(th)
	}
}

// nameNew reads the name of a new thread, unless too many were read since the last tick.
func (r *recording) nameNew(th *listedThread) {
	if !th.javaNamed && r.timed.named < maxNewNames {
		r.timed.named++
		r.dir.name(th)
	}
}

// tellStarts reports the starts of threads that had no Java name at first. It uses their present names.
func (r *recording) tellStarts() {
	if r.timed == nil {
		return
	}
	for th := range r.timed.starts {
		r.nameNew(th)
		r.timed.tellStart(th)
	}
}

func (t *telling) tellStart(th *listedThread) {
	if at, waits := t.starts[th]; waits {
		delete(t.starts, th)
		t.sink.ThreadStart(at, th.at(now()))
	}
}

// at returns a thread as it was at a given time. If its Java name is not known, it has only the kernel's name. Then it
// is a different profile.Thread from the same thread with its Java name: samples that were written are not changed.
func (th *listedThread) at(when int64) profile.Thread {
	t := profile.Thread{TID: th.kernel.TID, Name: th.kernel.Comm}
	if th.javaNamed {
		t.JavaName, t.JavaID = th.name, th.javaID
		if th.wasCalled(when) {
			t.JavaName = th.oldName
		}
	}
	return t
}

// threadOf returns the thread whose stack a snapshot shows. A virtual thread has the number of its carrier.
func (r *recording) threadOf(snap *look.Look, stack *profile.Stack) profile.Thread {
	t := profile.Thread{TID: snap.TID}
	if th := r.dir.threads[snap.TID]; th != nil {
		t = th.at(snap.When)
	}
	if stack == &r.virtual {
		t.Virtual, t.JavaID, t.JavaName = true, int64(stack.Virtual.ID), stack.Virtual.Name
	}
	return t
}

// tellSample hands a sample of CPU time to the Sink. The sample has just been counted.
func (r *recording) tellSample(snap *look.Look, stack *profile.Stack, link profile.Link) {
	if r.timed == nil {
		return
	}
	t := r.timed
	t.sample = profile.Sample{At: t.clock.at(snap.When), Thread: r.threadOf(snap, stack), Stack: stack,
		Count: snap.Samples(), CPU: time.Duration(snap.CPU), Link: link}
	t.sink.Sample(&t.sample)
}
