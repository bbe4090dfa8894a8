//go:build linux

package sampler

import (
	"os"

	"golang.org/x/sys/unix"

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
// bpf_overflow_handler). The program lets samples of one process pass: nothing is ever copied of other processes. It
// knows a process by its number outside of all containers, so goprof must be outside, too. Events of CPUs need
// CAP_PERFMON and CAP_BPF.
//
// Threads with a copier (perf_copy.go) keep events of their own, and samples by the events of the CPUs do not count for
// them.

// initialPIDs is the name of the namespace of process numbers that the kernel begins with (include/linux/proc_ns.h,
// PROC_PID_INIT_INO).
const initialPIDs = "pid:[4026531836]"

// watchEveryone opens the events of the CPUs. Where it cannot, each thread has its own events.
func (r *perfRun) watchEveryone() {
	if space, err := os.Readlink("/proc/self/ns/pid"); err != nil || space != initialPIDs || !r.power.Kernel {
		return
	}
	filter, err := filterProgram(r.perf.pid).loadForPerf(nil)
	if err != nil {
		return
	}
	r.filter = filter
	r.everyone = &perfThread{tid: -1, stack: r.mostStack()}
	if !r.openEveryone() {
		r.unwatchEveryone()
	}
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

// openEveryone opens an event on each CPU, all or none.
func (r *perfRun) openEveryone() bool {
	w := r.everyone
	r.now = ptrace.Monotonic()
	w.events = make([]perfEvent, len(r.cpus))
	for i := range w.events {
		w.events[i].fd = -1
	}
	attr := perfAttr(r.perf.cpu, 0, w.stack, r.inKernel(), false)
	attr.Config = unix.PERF_COUNT_SW_CPU_CLOCK
	attr.Bits |= unix.PerfBitDisabled
	for i, cpu := range r.cpus {
		e := &w.events[i]
		r.drawWide(e)
		attr.Sample = e.period
		fd, err := openEvent(&attr, -1, cpu, r.steady[i])
		if err == unix.ENODEV { // this CPU was switched off meanwhile
			continue
		}
		if err != nil {
			return false
		}
		e.fd = int32(fd)
		r.events++
		if unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, r.filter) != nil ||
			unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0) != nil {
			return false
		}
	}
	return true
}

func (r *perfRun) closeEveryone() {
	for i := range r.everyone.events {
		if e := &r.everyone.events[i]; e.fd >= 0 {
			unix.Close(int(e.fd))
			e.fd = -1
			r.events--
		}
	}
}

func (r *perfRun) unwatchEveryone() {
	if r.everyone != nil {
		r.closeEveryone()
		unix.Close(r.filter)
		r.everyone = nil
	}
}

// meet returns what is known of a thread that has no events of its own. A thread that is not listed yet is looked up
// now. If it has ended since, nothing is known of it.
func (r *perfRun) meet(tid int) (*perfThread, *thread) {
	r.scan.now = r.now
	known := r.scan.find(tid)
	if known == nil {
		return nil, nil
	}
	w := &perfThread{tid: tid, th: known}
	r.threads[tid] = w
	return w, known
}

// wideRedraw is the number of intervals for which an event of a CPU keeps its period, on the average.
const wideRedraw = 32

// drawWide draws the period of a CPU's event, and the time for which the event keeps it.
//
// A new period begins when it is set, so the part of the old period that had passed is lost. That part is half a
// period, on the average, for the moment of the change has nothing to do with the timer. The mean rate is higher by
// just that much. Rates are drawn evenly around this mean, as in randomPeriod.
func (r *perfRun) drawWide(e *perfEvent) {
	interval := float64(r.cfg.Interval)
	if r.cfg.NoJitter {
		e.period, e.until = uint64(r.cfg.Interval), 1<<62
		return
	}
	keep := wideRedraw * (0.5 + r.rng.Float64())
	rate := 1 + (2*r.rng.Float64()-1)/jitterShare + 0.5/keep
	e.period = max(uint64(interval/rate), leastPeriod)
	e.until = r.now + int64(keep*interval)
}

// redrawEveryone changes the periods that have been kept for their time. Otherwise a program that does the same thing
// in each interval would be met in the same place again and again.
func (r *perfRun) redrawEveryone() {
	if r.everyone == nil {
		return
	}
	for i := range r.everyone.events {
		if e := &r.everyone.events[i]; e.fd >= 0 && r.now >= e.until {
			r.drawWide(e)
			setPeriod(int(e.fd), &e.period)
		}
	}
}

// fitEveryone makes the copies as large as the samples of a thread have needed.
func (r *perfRun) fitEveryone(w *perfThread) {
	all := r.everyone
	if all == nil {
		return
	}
	all.seen += w.seen
	all.deepest = max(all.deepest, w.deepest)
	w.seen, w.deepest = 0, 0
	stack := all.fitStack(r.mostStack())
	if stack == all.stack {
		return
	}
	all.stack, all.seen, all.deepest = stack, 0, 0
	r.reopenEveryone()
}

func (r *perfRun) reopenEveryone() {
	r.closeEveryone()
	if !r.openEveryone() {
		r.unwatchEveryone()
		r.round-- // so that all threads get their own
	}
}
