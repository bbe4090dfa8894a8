//go:build linux

package events

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/sampler"
	"goprof/sampler/bpf"
	"goprof/sampler/ring"
	"goprof/sampler/span"
)

func (r *eventRun) openProbes() error {
	for i := range r.list {
		if r.list[i].isCounter() {
			continue
		}
		if r.array < 0 {
			r.openSpans()
			if err := r.openOutputs(); err != nil {
				return err
			}
		}
		r.list[i].spans = r.spans
		if err := r.openBuffers(&r.list[i]); err != nil {
			return err
		}
		if err := r.list[i].Pairing.open(); err != nil {
			return err
		}
		if err := r.list[i].IO.open(r.CPU); err != nil {
			return err
		}
		err := r.loadProgram(i)
		if r.list[i].Pairing.closeCalls(); err != nil {
			return err
		}
	}
	return r.setProbes()
}

func (r *eventRun) openSpans() {
	if r.spans == nil {
		r.spans, r.stats.NoSpans = span.New(0)
		r.spans.Follow(r.PID, r.cfg.Contexts)
	}
}

// openOutputs opens the events to which programs write: one for each CPU, with its ring.
func (r *eventRun) openOutputs() (err error) {
	attr := r.eventAttr()
	attr.Type, attr.Config, attr.Sample = unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_BPF_OUTPUT, 1
	attr.Wakeup = 1 // wake at once: the heap behind the stack, and names, are read after the hit
	for i, cpu := range r.cpus {
		fd, err := ring.OpenEvent(&attr, -1, cpu, r.rings[i])
		if err != nil {
			return err
		}
		r.outputs = append(r.outputs, fd)
	}
	if r.array, err = bpf.PerfArray(r.cpus, r.outputs); err != nil {
		return &ring.Error{Call: "bpf", Err: err}
	}
	return nil
}

// openBuffers makes the map of threads, if the event has a Buffer. All events of a run share the map.
func (r *eventRun) openBuffers(e *Event) (err error) {
	if e.Buffer == NoBuffer || r.buffers >= 0 {
		return nil
	}
	if r.buffers, err = bufferMap(); err != nil {
		return &ring.Error{Call: "bpf", Err: err}
	}
	return nil
}

// eventAttr returns the part of the attributes that is the same for all events of a run.
func (r *eventRun) eventAttr() unix.PerfEventAttr {
	attr := unix.PerfEventAttr{
		Size: unix.PERF_ATTR_SIZE_VER5,
		Sample_type: unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_TIME | unix.PERF_SAMPLE_ID | unix.PERF_SAMPLE_RAW |
			unix.PERF_SAMPLE_REGS_USER | unix.PERF_SAMPLE_STACK_USER,
		Bits:              unix.PerfBitUseClockID | unix.PerfBitExcludeHv,
		Clockid:           unix.CLOCK_MONOTONIC,
		Sample_regs_user:  r.CPU.Perf.Mask,
		Sample_stack_user: uint32(r.stack) &^ 7,
	}
	if r.kernel {
		attr.Sample_type |= unix.PERF_SAMPLE_CALLCHAIN
		attr.Bits |= unix.PerfBitExcludeCallchainUser
	}
	return attr
}

// loadProgram loads the BPF program of one event, with the memory in which it counts.
func (r *eventRun) loadProgram(number int) error {
	e := &r.list[number]
	fd, mem, err := bpf.NewMapped(countsSize)
	if err != nil {
		return &ring.Error{Call: "bpf", Err: err}
	}
	defer unix.Close(fd) // the program and the mapping keep the map alive
	counts := (*eventCounts)(unsafe.Pointer(&mem[0]))
	counts.Interval, counts.Paused = min(max(e.Interval, 1), maxInterval), 1
	r.probes = append(r.probes, eventProbe{number: number, at: e.Probes, prog: -1, mem: mem, counts: counts})
	if e.IO != nil {
		return r.loadIO(number, fd)
	}
	if err := r.load(probeProgram(e, number+1, r.CPU, fd, r.buffers, r.array), len(r.probes)-1); err != nil {
		return err
	}
	return e.Pairing.programs(e, number+1, r.CPU, fd, r.array, func(c *probeCode, at []Probe, frees bool) error {
		r.probes = append(r.probes, eventProbe{number: number, at: at, prog: -1, frees: frees})
		return r.load(c, len(r.probes)-1)
	})
}

func (r *eventRun) load(c *probeCode, i int) error {
	kind := uint32(bpfProgKprobe)
	if r.probes[i].point != "" {
		kind = bpf.RawTracepoint
	}
	prog, err := c.LoadAs(kind, nil)
	if err != nil {
		return &ring.Error{Call: "bpf", Err: err}
	}
	r.probes[i].prog = prog
	return nil
}

// pause sets whether hits count. Hits count from when all probes are set until the first one is removed, so that all
// events of a run cover the same time. The kernel needs some ms to set or remove a probe, and more on a busy machine.
func (r *eventRun) pause(paused uint64) {
	for i := range r.probes {
		if c := r.probes[i].counts; c != nil {
			atomic.StoreUint64(&c.Paused, paused)
		}
	}
}

// setProbes sets the breakpoints. A probe belongs to the address space of a thread of the process, so all threads reach
// it.
func (r *eventRun) setProbes() error {
	if len(r.probes) == 0 {
		return nil
	}
	kind, err := ProbeType()
	if err != nil {
		return err
	}
	if r.probeTID = r.proc.AnyThread(); r.probeTID == 0 {
		return sampler.ErrNoProcess
	}
	for i := range r.probes {
		p := &r.probes[i]
		if r.isStopped(p) {
			continue
		}
		if p.point != "" && len(p.events) == 0 {
			if err := p.attach(); err != nil {
				return err
			}
		}
		for _, at := range p.at {
			fd, err := setProbe(kind, r.probeTID, at, p.prog)
			if err != nil {
				return err
			}
			p.events = append(p.events, fd)
		}
	}
	return nil
}

// attach attaches the program to its raw tracepoint.
func (p *eventProbe) attach() error {
	fd, err := bpf.Attach(p.point, p.prog)
	if err != nil {
		return &ring.Error{Call: "bpf", Err: err}
	}
	p.events = append(p.events, fd)
	return nil
}

// ProbeCall is the call that sets a probe, in a ring.Error.
const ProbeCall = "perf_event_open (uprobe)"

// setProbe sets one probe, and returns its descriptor. It names the file by goprof's own descriptor, because a path may
// lead elsewhere by now.
func setProbe(kind uint32, tid int, at Probe, prog int) (int, error) {
	path := append([]byte("/proc/self/fd/"+strconv.Itoa(int(at.File.Fd()))), 0)
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&path[0])
	attr := unix.PerfEventAttr{
		Type:   kind,
		Size:   unix.PERF_ATTR_SIZE_VER5,
		Ext1:   uint64(uintptr(unsafe.Pointer(&path[0]))),
		Ext2:   at.Offset,
		Sample: 1,
		Wakeup: 1,
	}
	fd, err := unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	runtime.KeepAlive(at.File)
	if err != nil {
		return -1, &ring.Error{Call: ProbeCall, Err: err}
	}
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, prog); err != nil {
		unix.Close(fd)
		return -1, &ring.Error{Call: "PERF_EVENT_IOC_SET_BPF", Err: err}
	}
	return fd, nil
}

// ErrNoUprobes: this kernel has no uprobes that perf_event_open can set. They need Linux 4.17 or later with
// CONFIG_UPROBE_EVENTS.
var ErrNoUprobes = errors.New("sampler: this kernel has no uprobes for perf_event_open")

// ProbeType returns the kernel's number for the source of uprobe events.
func ProbeType() (uint32, error) {
	b, err := os.ReadFile("/sys/bus/event_source/devices/uprobe/type")
	if err != nil {
		return 0, ErrNoUprobes
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 32)
	if err != nil {
		return 0, ErrNoUprobes
	}
	return uint32(n), nil
}

// followProcess sets the probes again if the thread through which they were set has ended: the probes have then lost
// the address space.
func (r *eventRun) followProcess() {
	if r.probeTID == 0 || r.isAlive(r.probeTID) {
		return
	}
	r.closeBreakpoints(func(p *eventProbe) bool { return p.point == "" })
	if err := r.setProbes(); err != nil && !r.proc.Ended() {
		r.failed = err
	}
}

// isAlive reports whether a thread has not ended. A leader that has ended before its process is a zombie, and counts as
// ended.
func (r *eventRun) isAlive(tid int) bool {
	state, _ := r.proc.Status(tid)
	return state != 0 && state != 'Z' && state != 'X'
}

// closeBreakpoints makes the kernel remove the breakpoints. For each breakpoint the kernel waits some 50 to 200 ms
// until no CPU stands at it (kernel/events/uprobes.c, uprobe_unregister_sync). So goprof closes many breakpoints at the
// same time, each on an OS thread.
func (r *eventRun) closeBreakpoints(which func(*eventProbe) bool) {
	var all sync.WaitGroup
	room := make(chan struct{}, 32)
	for i := range r.probes {
		if !which(&r.probes[i]) {
			continue
		}
		for _, fd := range r.probes[i].events {
			room <- struct{}{}
			all.Go(func() {
				unix.Close(fd)
				<-room
			})
		}
		r.probes[i].events = nil
	}
	all.Wait()
}

func allProbes(*eventProbe) bool { return true }

// closeProbes removes the breakpoints, and adds up the counts of their programs.
func (r *eventRun) closeProbes() {
	r.closeBreakpoints(allProbes)
	for i := range r.probes {
		p := &r.probes[i]
		if p.counts != nil {
			p.sum(&r.counts[p.number])
			r.list[p.number].Pairing.end(r.began, r.over, &p.counts.pairCounts)
			r.list[p.number].IO.end(p.mem)
			unix.Munmap(p.mem)
			p.counts, p.mem = nil, nil
		}
		if p.prog >= 0 {
			unix.Close(p.prog)
			p.prog = -1
		}
	}
}

func (p *eventProbe) sum(to *sampler.EventCount) {
	if p.counts == nil {
		return
	}
	to.Hits = atomic.LoadUint64(&p.counts.Hits)
	to.Amount = atomic.LoadUint64(&p.counts.Amount)
	to.Missed = atomic.LoadUint64(&p.counts.Missed)
	to.Interval = max(p.longest, atomic.LoadUint64(&p.counts.Interval))
}
