//go:build linux

package perf

import (
	"errors"

	"golang.org/x/sys/unix"

	"goprof/sampler/cpuset"
	"goprof/sampler/look"
	"goprof/sampler/ring"
	"goprof/sampler/threads"
)

// The events of single threads: which threads have events, on which CPUs, and how much stack the events copy. Only
// threads with Hint.Soon have events, because the event of a thread makes each switch of threads stop and start a
// timer. That slows down a program whose threads often wait for each other (docs/decisions/0008).
//
// An event belongs to one thread and one CPU: a ring can be shared by the threads of one CPU only
// (kernel/events/core.c, perf_event_set_output). The kernel can let new threads inherit events, but the period of an
// inherited event cannot be changed (period.go). When no more events can be opened, further threads get samples from
// the events of the CPUs.

// mostEvents bounds the events: each takes some 2 KB of kernel memory.
const mostEvents = 1 << 15

// perfThread is a thread that has events of its own, or had a sample by the events of the CPUs.
type perfThread struct {
	tid    int
	th     *threads.Thread
	events []perfEvent // the index is that of the CPU; fd is -1 where the thread may not run
	copies stackFit
	allows unix.CPUSet

	copier  *perfCopier
	spanned bool // its events have the program ringSpans.alone, not a copier

	batch   uint64 // the last batch with a sample of the thread
	from    uint64 // the thread's CPU time when it was first seen
	counted int64  // how many samples its samples stand for together
	lacks   int64  // how many samples it lacks, as of the last batch
	charged uint64 // the thread's CPU time at that batch
	heardAt uint64 // the thread's CPU time at its last sample, or when its events were opened
}

// watchAll opens and closes events of threads, after a new listing of all threads and for hot threads. Afterwards each
// of these threads has events if it needs them. Events of threads that have ended are closed.
func (r *perfRun) watchAll() {
	if r.scan.Round != r.round {
		r.round = r.scan.Round
		for tid, th := range r.threads {
			if r.scan.ByTID[tid] != th.th {
				r.unwatch(th)
			}
		}
		for _, th := range r.scan.ByTID {
			if r.needsEvents(th) {
				r.watch(th)
			}
		}
	}
	for _, th := range r.scan.Hot {
		if th.TID == 0 || !r.needsEvents(th) {
			continue
		}
		// A thread may be known here only because of a sample by the events of the CPUs, before it was to have its own.
		if known := r.threads[th.TID]; known != nil && known.hasEvents() {
			r.followThread(known)
		} else {
			r.watch(th)
		}
	}
}

// silence is how many samples a thread may owe before goprof asks on which CPUs it may run now.
const silence = 32

// followThread asks on which CPUs a thread may run, if the thread uses CPU time but has no samples.
func (r *perfRun) followThread(th *perfThread) {
	if int64(th.th.Last.Ran-min(th.heardAt, th.th.Last.Ran)) < silence*int64(r.cfg.Interval) {
		return
	}
	th.heardAt = th.th.Last.Ran
	if allows, ok := cpuset.Affinity(th.tid); ok && allows != th.allows {
		r.rewatch(th, th.copies.stack)
	}
}

// needsEvents reports whether a thread is to have events of its own. They need rings of their own: otherwise goprof
// could not distinguish their samples from those by the events of the CPUs.
func (r *perfRun) needsEvents(th *threads.Thread) bool { return th.Hint.Soon && r.rings.havePrompt() }

// hasEvents reports whether a thread has events of its own. The events of the CPUs serve the other threads.
func (w *perfThread) hasEvents() bool { return len(w.events) > 0 }

// mostStack returns the largest size of a copy of a stack.
func (r *perfRun) mostStack() int {
	if r.cfg.MaxStack > 0 {
		return min(ring.StackFor(r.rings.size), r.cfg.MaxStack)
	}
	return ring.StackFor(r.rings.size)
}

// watch opens a thread's events. They make the largest copies, because the size that the thread needs is not known yet.
func (r *perfRun) watch(th *threads.Thread) {
	known := r.threads[th.TID]
	if th.Hint.Skip || known != nil && known.hasEvents() || r.events+len(r.rings.cpus) > r.mostEvents {
		return
	}
	w := &perfThread{tid: th.TID, th: th, copies: stackFit{stack: r.mostStack()},
		from: th.Last.Ran}
	r.threads[th.TID] = w
	r.openEvents(w)
	if !r.grouped && r.events%128 < len(r.rings.cpus) {
		r.drain() // opening thousands takes a while
	}
}

// openEvents opens the events of a thread, one for each CPU on which it may run.
func (r *perfRun) openEvents(w *perfThread) {
	rings := r.rings.promptRings()
	var ok bool
	w.allows, ok = cpuset.Affinity(w.tid)
	w.heardAt = w.th.Last.Ran
	w.events = make([]perfEvent, len(r.rings.cpus))
	for i := range w.events {
		w.events[i].fd = -1
	}
	attr := ring.SampleAttr(r.perf.CPU, 0, w.copies.stack, r.inKernel(), true)
	for i, cpu := range r.rings.cpus {
		e := &w.events[i]
		if ok && !w.allows.IsSet(cpu) {
			continue
		}
		r.firstPeriod(e)
		attr.Sample = e.period
		fd, err := ring.OpenEvent(&attr, w.tid, cpu, rings[i])
		if errors.Is(err, unix.ENODEV) { // this CPU was switched off meanwhile
			continue
		}
		if err != nil {
			r.unwatch(w) // a thread has all its events or none
			if !errors.Is(err, unix.ESRCH) {
				r.mostEvents = r.events
			}
			return
		}
		e.fd = int32(fd)
		r.events++
	}
	if w.copier != nil {
		r.noCopies = !w.attach(w.copier.prog) || r.noCopies
		return
	}
	w.spanned = false
	if r.arm(w); w.copier == nil && r.rings.spans.alone >= 0 {
		w.spanned = w.attach(r.rings.spans.alone)
	}
}

func (r *perfRun) unwatch(w *perfThread) {
	for i := range w.events {
		if fd := w.events[i].fd; fd >= 0 {
			unix.Close(int(fd))
			w.events[i].fd = -1
			r.events--
		}
	}
	r.disarm(w)
	delete(r.threads, w.tid)
}

// rewatch opens a thread's events again, with copies of another size.
func (r *perfRun) rewatch(w *perfThread, stack int) {
	for i := range w.events {
		if fd := w.events[i].fd; fd >= 0 {
			unix.Close(int(fd))
			r.events--
		}
	}
	w.copies.begin(stack)
	r.openEvents(w)
}

// note keeps what a sample says of its thread. need is how much stack the thread had, 0 if not known.
func (r *perfRun) note(w *perfThread, s *ring.Sample, need uint64) {
	if w.batch != r.batch {
		w.batch = r.batch
		r.sampled = append(r.sampled, w)
		w.charged = w.th.Last.Ran
		if stat, ok := r.scan.Charged(w.th); ok && w.th.TID != 0 && !r.over {
			w.charged = stat.Ran
		}
		w.heardAt = w.charged
	}
	if need == 0 {
		need = ring.MostStack
	}
	w.copies.seen++
	w.copies.deepest = max(w.copies.deepest, need)
}

// A copy of the whole 64 KB costs a thread some microseconds more than one of the few KB that most stacks have, and
// fills the rings sooner. So goprof makes smaller copies once many samples have needed less than a quarter. When one
// sample needs more, goprof makes the copies as large as possible at once. After that it needs windowGrows times as
// many samples to make them smaller again.
const (
	stackWindow = 64
	windowGrows = 16
	windowMost  = 1 << 40
	stackLeast  = 8 << 10
)

// stackFit is how much of a stack is copied, and how much the last samples have needed.
type stackFit struct {
	stack   int // bytes that are copied
	seen    int // samples
	deepest uint64
	window  int // how many samples fit judges by; 0: stackWindow
}

// begin sets the size of the copies from now on.
func (f *stackFit) begin(stack int) { f.stack, f.seen, f.deepest = stack, 0, 0 }

// fit returns how many bytes to copy from now on.
func (f *stackFit) fit(most int) int {
	if f.deepest > uint64(f.stack) && f.stack < most {
		f.window = min(max(f.window, stackWindow)*windowGrows, windowMost)
		return most
	}
	if f.seen < max(f.window, stackWindow) {
		return f.stack
	}
	fits := max(int(2*min(f.deepest, ring.MostStack)+ring.StackStep-1)/ring.StackStep*ring.StackStep, stackLeast)
	f.seen, f.deepest = 0, 0
	if fits <= f.stack/2 {
		return fits
	}
	return f.stack
}

// bill charges a sample with the CPU time that its thread has used since its last sample (threads/bill.go). Samples
// that are read together share that time. A large debt is paid over several samples.
func (r *perfRun) bill(w *perfThread, th *threads.Thread, snap *look.Look) {
	if th == nil || th != w.th {
		return
	}
	if r.scan.IsPooled(th) {
		r.scan.BillPooled(th, snap)
		return
	}
	if w.charged <= th.Billed {
		return
	}
	owed := w.charged - th.Billed
	r.scan.Bills.BillSample(th, th.Billed+min(owed, max(2*r.interval(), owed/8)), false, snap)
}
