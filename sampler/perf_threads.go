//go:build linux

package sampler

import (
	"errors"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
	"goprof/sampler/look"
)

// This file keeps the events of single threads: which threads have events, on which CPUs, and how much stack the events
// copy. Threads with Hint.Soon have events, and no others: with an event of a thread each switch of threads stops and
// starts a timer, which changes a program that hands over often (docs/decisions/0008).
//
// An event belongs to one thread and one CPU: a ring can be shared by the threads of one CPU only
// (kernel/events/core.c, perf_event_set_output). The kernel can let new threads inherit events, but the period of an
// inherited event cannot be changed (perf_period.go). Where no more events can be opened, threads go without: they have
// samples by the events of the CPUs.

// mostEvents bounds the events: each takes some 2 KB of the kernel's memory.
const mostEvents = 1 << 15

// perfThread is a thread that has events, or was met by those of the CPUs.
type perfThread struct {
	tid    int
	th     *thread
	events []perfEvent // by index of CPU; fd -1 where it may not run
	copies stackFit
	allows unix.CPUSet

	copier *perfCopier

	batch   uint64 // the drain that saw it last
	from    uint64 // what the kernel had charged the thread when it was met
	counted int64  // for how many samples its samples have counted
	lacks   int64  // how many there should be more, as of the last batch
	charged uint64 // what the kernel had charged the thread then
	heardAt uint64 // the same at its last sample, or when its events were opened
}

// watchAll gives events to the threads that need them.
func (r *perfRun) watchAll() {
	if r.scan.round != r.round {
		r.round = r.scan.round
		for tid, th := range r.threads {
			if r.scan.byTID[tid] != th.th {
				r.unwatch(th)
			}
		}
		for _, th := range r.scan.byTID {
			if r.needsEvents(th) {
				r.watch(th)
			}
		}
	}
	for _, th := range r.scan.hot {
		if th.tid == 0 || !r.needsEvents(th) {
			continue
		}
		// A thread may be known only because the events of the CPUs met it, before it was to have its own.
		if known := r.threads[th.tid]; known != nil && known.hasEvents() {
			r.followThread(known)
		} else {
			r.watch(th)
		}
	}
}

// silence is how many samples a thread may owe before it is asked whether it has gone to other CPUs.
const silence = 32

// followThread deals with a thread that runs and gives no samples: it looks on which CPUs the thread may run.
func (r *perfRun) followThread(th *perfThread) {
	if int64(th.th.last.Ran-min(th.heardAt, th.th.last.Ran)) < silence*int64(r.cfg.Interval) {
		return
	}
	th.heardAt = th.th.last.Ran
	if allows, ok := affinity(th.tid); ok && allows != th.allows {
		r.rewatch(th, th.copies.stack)
	}
}

// needsEvents reports whether a thread is to have events of its own. They need rings of their own. Otherwise nobody
// knows whether a sample is by them or by the events of the CPUs.
func (r *perfRun) needsEvents(th *thread) bool { return th.hint.Soon && r.rings.havePrompt() }

// hasEvents reports whether a thread has events of its own. The events of the CPUs serve the other threads.
func (w *perfThread) hasEvents() bool { return len(w.events) > 0 }

// mostStack is how much of a stack is ever copied.
func (r *perfRun) mostStack() int {
	if r.cfg.MaxStack > 0 {
		return min(ringStack(r.rings.size), r.cfg.MaxStack)
	}
	return ringStack(r.rings.size)
}

// watch opens a thread's events, with the largest copies: how much the thread needs is not known yet.
func (r *perfRun) watch(th *thread) {
	known := r.threads[th.tid]
	if th.hint.Skip || known != nil && known.hasEvents() || r.events+len(r.rings.cpus) > r.mostEvents {
		return
	}
	w := &perfThread{tid: th.tid, th: th, copies: stackFit{stack: r.mostStack()},
		from: th.last.Ran}
	r.threads[th.tid] = w
	r.openEvents(w)
	if !r.grouped && r.events%128 < len(r.rings.cpus) {
		r.drain() // opening thousands takes a while
	}
}

func (r *perfRun) openEvents(w *perfThread) {
	rings := r.rings.promptRings()
	var ok bool
	w.allows, ok = affinity(w.tid)
	w.heardAt = w.th.last.Ran
	w.events = make([]perfEvent, len(r.rings.cpus))
	for i := range w.events {
		w.events[i].fd = -1
	}
	attr := perfAttr(r.perf.cpu, 0, w.copies.stack, r.inKernel(), true)
	for i, cpu := range r.rings.cpus {
		e := &w.events[i]
		if ok && !w.allows.IsSet(cpu) {
			continue
		}
		r.firstPeriod(e)
		attr.Sample = e.period
		fd, err := openEvent(&attr, w.tid, cpu, rings[i])
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
		r.attach(w)
	} else {
		r.arm(w)
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

// rewatch opens a thread's events anew, with copies of another size.
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

// note keeps what a sample tells of its thread. need is how much stack the thread had, 0 if that is not known.
func (r *perfRun) note(w *perfThread, s *rawSample, need uint64) {
	if w.batch != r.batch {
		w.batch = r.batch
		r.sampled = append(r.sampled, w)
		w.charged = w.th.last.Ran
		if stat, ok := r.scan.charged(w.th); ok && w.th.tid != 0 && !r.over {
			w.charged = stat.Ran
		}
		w.heardAt = w.charged
	}
	if need == 0 {
		need = PerfStack
	}
	w.copies.seen++
	w.copies.deepest = max(w.copies.deepest, need)
}

// Copies of the whole 64 KB cost a thread some microseconds more than copies of the few KB that most stacks have, and
// the rings are full sooner. So the copies are made smaller once many samples have needed less than a quarter of it.
// When one sample needs more, the copies are made as large as can be at once. After that it takes windowGrows times as
// many samples to make them smaller again.
const (
	stackWindow = 64
	windowGrows = 16
	windowMost  = 1 << 40
	stackLeast  = 8 << 10
	stackStep   = 4 << 10
)

// stackFit is how much of a stack is copied, and how much the last samples have needed.
type stackFit struct {
	stack   int // bytes that are copied
	seen    int // samples
	deepest uint64
	window  int // how many samples decide; 0: stackWindow
}

// begin sets how much is copied from now on.
func (f *stackFit) begin(stack int) { f.stack, f.seen, f.deepest = stack, 0, 0 }

// fit is how many bytes to copy from now on.
func (f *stackFit) fit(most int) int {
	if f.deepest > uint64(f.stack) && f.stack < most {
		f.window = min(max(f.window, stackWindow)*windowGrows, windowMost)
		return most
	}
	if f.seen < max(f.window, stackWindow) {
		return f.stack
	}
	fits := max(int(2*min(f.deepest, PerfStack)+stackStep-1)/stackStep*stackStep, stackLeast)
	f.seen, f.deepest = 0, 0
	if fits <= f.stack/2 {
		return fits
	}
	return f.stack
}

// bill gives a sample the CPU time that its thread has used since the sample before (bill.go). Samples that are read
// together share that time. A debt that has grown large is paid over several samples.
func (r *perfRun) bill(w *perfThread, th *thread, snap *look.Look) {
	if th == nil || th != w.th {
		return
	}
	if r.scan.isPooled(th) {
		r.scan.billPooled(th, snap)
		return
	}
	if w.charged <= th.billed {
		return
	}
	owed := w.charged - th.billed
	r.scan.bills.billSample(th, th.billed+min(owed, max(2*r.interval(), owed/8)), false, snap)
}

func affinity(tid int) (set unix.CPUSet, ok bool) {
	return set, unix.SchedGetaffinity(tid, &set) == nil
}

// parseCPUList reads "0-3,8" (Documentation/admin-guide/cputopology.rst).
func parseCPUList(b []byte) (cpus []int) {
	const most = 1 << 13
	for len(b) > 0 {
		from, rest, ok := procfs.CutUint(b)
		if !ok || from >= most {
			return nil
		}
		b = rest
		to := from
		if len(b) > 0 && b[0] == '-' {
			if to, b, ok = procfs.CutUint(b[1:]); !ok || to >= most || to < from {
				return nil
			}
		}
		for cpu := from; cpu <= to && len(cpus) < most; cpu++ {
			cpus = append(cpus, int(cpu))
		}
		if len(b) == 0 || b[0] != ',' {
			return cpus
		}
		b = b[1:]
	}
	return cpus
}
