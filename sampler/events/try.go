//go:build linux

package events

import (
	"errors"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/arch/cpus"
	"goprof/process/procfs"
	"goprof/sampler"
	"goprof/sampler/cpuset"
	"goprof/sampler/ring"
)

// ErrNoCounter: the machine has no such counter.
var ErrNoCounter = errors.New("sampler: this machine has no such counter")

// TryCounter finds out whether goprof may open a counter on a process. It opens one that never starts.
func TryCounter(pid int, kind uint32, config uint64) error {
	if err := ring.SameClock(); err != nil {
		return err
	}
	proc := procfs.OpenDir(pid)
	tid := proc.AnyThread()
	proc.Close()
	attr := unix.PerfEventAttr{Type: kind, Size: unix.PERF_ATTR_SIZE_VER5, Config: config,
		Bits: unix.PerfBitDisabled | unix.PerfBitExcludeHv}
	fd, err := unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	switch {
	case err == nil:
		unix.Close(fd)
		return nil
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENODEV),
		errors.Is(err, unix.EINVAL):
		return ErrNoCounter
	}
	return &ring.Error{Call: "perf_event_open", Err: err}
}

// mayProbe asks for a probe in a file without a name. The kernel first checks whether goprof may have probes at all.
func mayProbe(kind uint32) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	path := new([8]byte)
	pin.Pin(path)
	attr := unix.PerfEventAttr{Type: kind, Size: unix.PERF_ATTR_SIZE_VER5, Sample: 1,
		Ext1: uint64(uintptr(unsafe.Pointer(path)))}
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err == nil {
		unix.Close(fd)
	}
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return &ring.Error{Call: ProbeCall, Err: err}
	}
	return nil
}

// TryProbes finds out whether the kernel has probes, and whether it lets goprof load a program that writes into a ring.
// It sets no probe.
func TryProbes() error { return tryEvent(Event{Name: "try"}) }

// tryEvent finds out whether goprof may record an event, without setting a probe in the process.
func tryEvent(e Event) error {
	kind, err := ProbeType()
	if err != nil {
		return err
	}
	if err := mayProbe(kind); err != nil {
		return err
	}
	cpu := cpus.Here()
	if cpu == nil {
		return &ring.Error{Call: "perf_event_open", Err: unix.EOPNOTSUPP}
	}
	r := newEventRun(&Engine{Base: sampler.Base{CPU: cpu}, list: []Event{e}})
	r.stack, r.cpus = ring.MostStack, cpuset.Online()[:1]
	defer r.close()
	if r.rings, err = ring.Open(r.cpus, ring.Least, ring.Floor); err != nil {
		return err
	}
	if err := r.openOutputs(); err != nil {
		return err
	}
	r.counts = []sampler.EventCount{{}}
	if err := e.IO.open(cpu); err != nil {
		return err
	}
	if err := r.loadProgram(0); err != nil || e.IO == nil {
		return err
	}
	return r.probes[0].attach()
}

// TryIO finds out whether goprof may record an event with IO. Such programs must also know the process by its number.
// TryIO attaches one of them to its tracepoint for a moment, paused.
func TryIO() error {
	if !ring.KnowsPIDs() {
		return ring.ErrNested
	}
	return tryEvent(Event{Name: "try", IO: &IO{Ledger: NewLedger()}})
}
