//go:build linux

package perf

import (
	"errors"
	"math"
	"math/rand/v2"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/arch/cpus"
	"goprof/sampler/bpf"
	"goprof/sampler/cpuset"
	"goprof/sampler/ptrace"
	"goprof/sampler/ring"
	"goprof/sampler/span"
)

// One event for each CPU, in place of several for each thread.
//
// The event of a thread has a timer. The kernel starts the timer each time the thread gets a CPU, and stops it when the
// thread leaves the CPU. A program whose threads switch all the time spends more time on the timers than on the
// switches: measuring the program would change it (docs/decisions/0008). A thread that lives for some milliseconds ends
// before goprof has opened events for it. Thousands of threads need more events than can be opened.
//
// The event of a CPU has a timer that runs all the time. When the timer runs out, the sample is the running thread,
// however short its life. The kernel runs a BPF program before it takes the sample (kernel/events/core.c,
// bpf_overflow_handler). The program permits samples of the wanted processes. Nothing is copied of other processes. The
// program knows a process by its number outside of all containers, so goprof must run outside, too. Events of CPUs need
// CAP_PERFMON and CAP_BPF.
//
// Threads with a copier (copy.go) keep events of their own, and samples by the events of the CPUs do not count for
// them.

type wideEvents struct {
	rings    *perfRings
	cpu      *arch.CPU
	kernel   ring.Kernel
	interval int64
	exact    bool                // periods are multiples of the interval: for tests
	next     int64               // when the next look around is; 0: the sampling thread also wakes up to change periods
	filter   int                 // the program that selects samples
	attr     *unix.PerfEventAttr // attributes of events without such a program; nil: the events have one
	most     int                 // the largest copy of a stack
	keeps    float64             // events keep their periods for this many intervals
	until    int64               // the events get other periods at this time, or soon afterwards
	pace     pace
	copies   stackFit
	events   []perfEvent
	rng      *rand.Rand
	failed   error // why the events could not be opened again
}

// mayWatch returns an error if events of CPUs are not possible, as far as goprof knows without a trial.
func mayWatch(pid int) error {
	if !ring.KnowsPIDs() { // first: no privilege helps here
		return ring.ErrNested
	}
	_, err := ring.Try(pid)
	return err
}

// TryWide finds out whether perf may sample a process by events of CPUs, and returns the reason if not. It opens an
// event of a CPU that never starts. pid 0 is goprof itself.
func TryWide(pid int) error {
	if !ring.KnowsPIDs() { // no privilege helps here
		return ring.ErrNested
	}
	// Before the event: a user who may open events may still not load programs.
	prog, err := filterProgram(0, nil).LoadForPerf(nil)
	if err != nil {
		return &ring.Error{Call: "bpf", Err: err}
	}
	defer unix.Close(prog)
	if _, err := ring.Try(pid); err != nil {
		return err
	}
	attr := ring.SampleAttr(cpus.Here(), 1e9, stackLeast, ring.InKernel, false)
	attr.Config = unix.PERF_COUNT_SW_CPU_CLOCK
	attr.Bits |= unix.PerfBitDisabled
	fd, err := unix.PerfEventOpen(&attr, -1, cpuset.Online()[0], -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return &ring.Error{Call: "perf_event_open", Err: err}
	}
	defer unix.Close(fd)
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, prog); err != nil {
		return &ring.Error{Call: "PERF_EVENT_IOC_SET_BPF", Err: err}
	}
	return nil
}

// filterProgram makes a program that lets the samples of one process pass, each with its span.
func filterProgram(pid int, outputs *span.Outputs) *bpf.Code {
	c := bpf.New()
	c.Mov(bpf.R6, bpf.R1)
	c.Call(bpf.GetCurrentPIDTGID)
	c.Mov(bpf.R1, bpf.R0)
	c.Imm(bpf.RightImm, bpf.R1, 32) // the upper half is the process, the lower half the thread
	c.Imm(bpf.MovImm, bpf.R0, 0)
	c.Jump(bpf.JumpNeImm, bpf.R1, 0, pid, "end")
	outputs.Write(c, -ring.SpanSize)
	c.Label("end")
	c.Op(bpf.Exit, 0, 0, 0, 0)
	return c
}

// open opens an event on each CPU, all or none.
func (w *wideEvents) open() error {
	w.drawMoment(ptrace.Monotonic())
	w.events = make([]perfEvent, len(w.rings.cpus))
	for i := range w.events {
		w.events[i].fd = -1
	}
	attr := ring.SampleAttr(w.cpu, 0, w.copies.stack, w.kernel, eachWakes(w.interval))
	attr.Config = unix.PERF_COUNT_SW_CPU_CLOCK
	if w.attr != nil {
		attr = *w.attr
	}
	attr.Bits |= unix.PerfBitDisabled
	for i, cpu := range w.rings.cpus {
		e := &w.events[i]
		e.period = w.draw()
		attr.Sample = e.period
		fd, err := ring.OpenEvent(&attr, -1, cpu, w.rings.steady[i])
		if errors.Is(err, unix.ENODEV) { // this CPU was switched off meanwhile
			continue
		}
		if err == nil {
			e.fd = int32(fd)
			err = w.begin(fd)
		}
		if err != nil {
			w.closeEvents()
			return err
		}
	}
	return nil
}

// begin gives an event the program that selects samples, and starts the event.
func (w *wideEvents) begin(fd int) error {
	if w.attr == nil {
		if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, w.filter); err != nil {
			return &ring.Error{Call: "PERF_EVENT_IOC_SET_BPF", Err: err}
		}
	}
	return unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0)
}

func (w *wideEvents) closeEvents() {
	for i := range w.events {
		if e := &w.events[i]; e.fd >= 0 {
			unix.Close(int(e.fd))
			e.fd = -1
		}
	}
}

// perfLate is how long after a moment the next look around is, on average. Times between looks around are spread
// evenly between 0.5 and 1.5 times perfLook, and a moment is more likely to fall into a long one.
const perfLate = perfLook * 13 / 24

// wideRedraw is the number of intervals for which the events of CPUs keep their periods, on average.
const wideRedraw = 32

// drawMoment draws when the events get other periods: all at one moment, because a lean run wakes up for it.
//
// After such a moment there is no sample for one period. So the moment must not depend on any program: not on full
// seconds, and not on wake-ups of goprof for a sample. Runs that are not lean change periods at a look around, whose
// moment is random too.
func (w *wideEvents) drawMoment(now int64) {
	w.until = math.MaxInt64
	if w.exact {
		return
	}
	w.until = now + int64(wideRedraw*(0.5+w.rng.Float64())*w.mean())
	w.keeps = float64(w.changeAt()-now) / w.mean()
}

// changeAt returns when the periods will be changed, on average.
func (w *wideEvents) changeAt() int64 {
	switch {
	case w.next == 0:
		return w.until
	case w.until <= w.next:
		return w.next
	}
	return w.until + perfLate
}

// draw draws a period.
//
// A new period begins when it is set, so the part of the old period that had passed is lost. That part is half a period
// on average, because the moment of the change does not depend on the timer. The mean of the drawn rates is higher by
// just that much. Rates are drawn evenly around this mean, as in randomPeriod.
func (w *wideEvents) draw() uint64 {
	if w.exact {
		return uint64(w.interval)
	}
	rate := 1 + (2*w.rng.Float64()-1)/jitterShare + 0.5/w.keeps
	return max(uint64(w.mean()/rate), leastPeriod)
}

// redraw changes the periods if their time is over. Otherwise a program that does the same thing in each interval would
// be sampled at the same place again and again.
func (w *wideEvents) redraw(now int64) {
	if now >= w.until {
		w.changePeriods(now)
	}
}

func (w *wideEvents) setPace(factor int32, now int64) {
	w.pace.set(factor, math.MaxInt64)
	w.changePeriods(now)
	w.pace.since = ptrace.Monotonic()
}

func (w *wideEvents) mean() float64 { return float64(w.interval) * float64(max(w.pace.factor, 1)) }

func (w *wideEvents) changePeriods(now int64) {
	w.drawMoment(now)
	for i := range w.events {
		if e := &w.events[i]; e.fd >= 0 {
			e.period = w.draw()
			ring.SetPeriod(int(e.fd), &e.period)
		}
	}
}

// fit adapts the size of the copies to what the samples of a thread have needed.
func (w *wideEvents) fit(needed *stackFit) {
	w.copies.seen += needed.seen
	w.copies.deepest = max(w.copies.deepest, needed.deepest)
	needed.seen, needed.deepest = 0, 0
	if stack := w.copies.fit(w.most); stack != w.copies.stack {
		w.copies.begin(stack)
		w.reopen()
	}
}

func (w *wideEvents) reopen() error {
	w.closeEvents()
	w.failed = w.open()
	return w.failed
}
