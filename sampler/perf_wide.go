//go:build linux

package sampler

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/arch/cpus"
	"goprof/sampler/ptrace"
)

// One event for each CPU, instead of some for each thread.
//
// The event of a thread has a timer. The kernel sets the timer each time the thread is given a CPU, and takes it off
// when the thread leaves the CPU. A program whose threads hand over all the time spends more on the timers than on
// handing over: looking at the program changes it (docs/decisions/0008). Threads that live some milliseconds have no
// events before they are listed, and thousands of threads need more events than can be opened.
//
// The event of a CPU has a timer that runs on. When the timer is over, the running thread is the sample, from a
// thread's first instruction on. The kernel runs a BPF program before it takes the sample (kernel/events/core.c,
// bpf_overflow_handler). The program lets samples of some processes pass: nothing is ever copied of others. It
// knows a process by its number outside of all containers, so goprof must be outside, too. Events of CPUs need
// CAP_PERFMON and CAP_BPF.
//
// Threads with a copier (perf_copy.go) keep events of their own, and samples by the events of the CPUs do not count for
// them.

// initialPIDs is the name of the namespace of process numbers that the kernel begins with (include/linux/proc_ns.h,
// PROC_PID_INIT_INO).
const initialPIDs = "pid:[4026531836]"

// wideEvents are the events of all CPUs.
type wideEvents struct {
	rings    *perfRings
	cpu      *arch.CPU
	kernel   perfKernel
	interval int64
	exact    bool    // at multiples of the interval: for tests
	next     int64   // when the next look around is; 0: we also wake up to change periods
	filter   int     // the program that chooses
	most     int     // of a stack, that is ever copied
	keeps    float64 // for how many intervals the events keep their periods
	until    int64   // when they are given others, or soon afterwards
	pace     pace
	copies   stackFit
	events   []perfEvent
	rng      *rand.Rand
	failed   error // why the events could not be opened anew
}

// knowsPIDs reports whether goprof knows processes by the numbers that BPF programs see.
func knowsPIDs() bool {
	space, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && space == initialPIDs
}

// Nested reports whether goprof is in a PID namespace, where perf cannot take samples of CPU time.
func Nested() bool { return !knowsPIDs() }

// ErrNested: goprof is in a PID namespace.
var ErrNested = errors.New("sampler: BPF programs know processes by their numbers outside of goprof's PID namespace")

// mayWatch reports whether there may be events of CPUs, as far as that is known without a trial; nil: there may.
func mayWatch(pid int) error {
	if !knowsPIDs() { // first: no right mends that
		return ErrNested
	}
	_, err := TryPerf(pid)
	return err
}

// TryWide finds out whether perf may watch the CPUs for samples of a process, and says why not. It opens an event of a
// CPU that never begins. pid 0 is ourselves.
func TryWide(pid int) error {
	if err := mayWatch(pid); err != nil {
		return err
	}
	prog, err := filterProgram(0).loadForPerf(nil)
	if err != nil {
		return &PerfError{"bpf", err}
	}
	defer unix.Close(prog)
	attr := perfAttr(cpus.Here(), 1e9, stackLeast, inKernel, false)
	attr.Config = unix.PERF_COUNT_SW_CPU_CLOCK
	attr.Bits |= unix.PerfBitDisabled
	fd, err := unix.PerfEventOpen(&attr, -1, onlineCPUs()[0], -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return &PerfError{"perf_event_open", err}
	}
	defer unix.Close(fd)
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, prog); err != nil {
		return &PerfError{"PERF_EVENT_IOC_SET_BPF", err}
	}
	return nil
}

// filterProgram lets samples of one process pass.
func filterProgram(pid int) *bpfCode {
	c := &bpfCode{jumps: map[string][]int{}}
	c.call(bpfGetCurrentPIDTGID)
	c.mov(r1, r0)
	c.imm(bpfRightImm, r1, 32) // the upper half is the process, the lower half the thread
	c.imm(bpfMovImm, r0, 1)
	c.jump(bpfJumpEqImm, r1, 0, pid, "end")
	c.imm(bpfMovImm, r0, 0)
	c.label("end")
	c.op(bpfExit, 0, 0, 0, 0)
	return c
}

// open opens an event on each CPU, all or none.
func (w *wideEvents) open() error {
	w.drawMoment(ptrace.Monotonic())
	w.events = make([]perfEvent, len(w.rings.cpus))
	for i := range w.events {
		w.events[i].fd = -1
	}
	attr := perfAttr(w.cpu, 0, w.copies.stack, w.kernel, eachWakes(w.interval))
	attr.Config = unix.PERF_COUNT_SW_CPU_CLOCK
	attr.Bits |= unix.PerfBitDisabled
	for i, cpu := range w.rings.cpus {
		e := &w.events[i]
		e.period = w.draw()
		attr.Sample = e.period
		fd, err := openEvent(&attr, -1, cpu, w.rings.steady[i])
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

// begin gives an event the program that chooses, and lets it begin.
func (w *wideEvents) begin(fd int) error {
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, w.filter); err != nil {
		return &PerfError{"PERF_EVENT_IOC_SET_BPF", err}
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

// perfLate is how long after a moment the next look around is, on the average. Times between looks around are spread
// evenly between 0.5 and 1.5 times perfLook, and a moment is more likely to fall into a long one.
const perfLate = perfLook * 13 / 24

// wideRedraw is the number of intervals for which the events of CPUs keep their periods, on the average.
const wideRedraw = 32

// drawMoment draws when the events are given other periods: all at one moment, because a lean run wakes up for it.
//
// Within one period behind such a moment there is no sample. So the moment must have nothing to do with any program: it
// is no full second, and none at which goprof wakes up for a sample. Other runs wait for a look around, whose moment is
// random, too.
func (w *wideEvents) drawMoment(now int64) {
	w.until = math.MaxInt64
	if w.exact {
		return
	}
	w.until = now + int64(wideRedraw*(0.5+w.rng.Float64())*w.mean())
	w.keeps = float64(w.changeAt()-now) / w.mean()
}

// changeAt is when the periods are changed, on the average.
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
// A new period begins when it is set, so the part of the old period that had passed is lost. That part is half a
// period, on the average, for the moment of the change has nothing to do with the timer. The mean rate is higher by
// just that much. Rates are drawn evenly around this mean, as in randomPeriod.
func (w *wideEvents) draw() uint64 {
	if w.exact {
		return uint64(w.interval)
	}
	rate := 1 + (2*w.rng.Float64()-1)/jitterShare + 0.5/w.keeps
	return max(uint64(w.mean()/rate), leastPeriod)
}

// redraw changes the periods if they have been kept for their time. Otherwise a program that does the same thing in
// each interval would be met in the same place again and again.
func (w *wideEvents) redraw(now int64) {
	if now >= w.until {
		w.changePeriods(now)
	}
}

// setPace lengthens all periods by another factor.
func (w *wideEvents) setPace(factor int32, now int64) {
	w.pace.set(factor, math.MaxInt64)
	w.changePeriods(now)
	w.pace.since = ptrace.Monotonic()
}

// mean is the mean period.
func (w *wideEvents) mean() float64 { return float64(w.interval) * float64(max(w.pace.factor, 1)) }

func (w *wideEvents) changePeriods(now int64) {
	w.drawMoment(now)
	for i := range w.events {
		if e := &w.events[i]; e.fd >= 0 {
			e.period = w.draw()
			setPeriod(int(e.fd), &e.period)
		}
	}
}

// fit makes the copies as large as the samples of a thread have needed.
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
