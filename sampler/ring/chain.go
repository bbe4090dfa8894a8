//go:build linux

package ring

import (
	"bytes"

	"golang.org/x/sys/unix"
)

// What an event of TaskAttr writes (include/uapi/linux/perf_event.h). With sample_id_all each record ends in
// {u32 pid, tid; u64 time}.
const (
	KindComm = 3 // {u32 pid, tid; char comm[]}: a thread has this name from now on
	KindExit = 4 // {u32 pid, ppid, tid, ptid; u64 time}
	KindFork = 7 // the same
	commExec = 1 << 13
	idBytes  = 16
)

// ChainAttr asks for a sample of whatever a CPU runs, except its idle task, after each period. A sample has the calls
// of the program to which frame pointers lead, and no memory.
func ChainAttr() unix.PerfEventAttr {
	return unix.PerfEventAttr{
		Type:        unix.PERF_TYPE_SOFTWARE,
		Size:        unix.PERF_ATTR_SIZE_VER5,
		Config:      unix.PERF_COUNT_SW_CPU_CLOCK,
		Sample_type: unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_TIME | unix.PERF_SAMPLE_CALLCHAIN,
		Clockid:     unix.CLOCK_MONOTONIC,
		Bits: unix.PerfBitUseClockID | unix.PerfBitExcludeHv | unix.PerfBitExcludeIdle | unix.PerfBitSampleIDAll |
			unix.PerfBitExcludeCallchainKernel,
	}
}

// TaskAttr asks for no samples, and for a record of each process that begins, ends or gets a name on a CPU.
func TaskAttr() unix.PerfEventAttr {
	a := ChainAttr()
	a.Config = unix.PERF_COUNT_SW_DUMMY
	a.Bits |= unix.PerfBitComm | unix.PerfBitCommExec | unix.PerfBitTask
	return a
}

// Chain is a sample of ChainAttr, or a record of TaskAttr.
type Chain struct {
	Kind     uint32
	PID, TID int
	When     int64
	InKernel bool     // of a sample: the thread ran the kernel's code
	Calls    []uint64 // of a sample: the leaf's address, and return addresses; none of the kernel's
	Parent   int      // of a beginning: the process that the new one is a copy of
	Comm     string   // of a name
	Exec     bool     // of a name: the process has become another program
}

// ParseEventChain reads a record of an event of ChainAttr or TaskAttr.
func (b Bytes) ParseEventChain(r Record) (c Chain, ok bool) {
	if r.End-r.At < idBytes {
		return c, false
	}
	c.Kind = r.Kind
	c.PID, c.TID = int(int32(b.U32(r.At))), int(int32(b.U32(r.At+4)))
	switch r.Kind {
	case KindSample:
		var s Sample
		c.When, c.InKernel = int64(b.U64(r.At+8)), r.Misc&perfMiscCPUMode == perfMiscInKernel
		_, ok = b.ParseChain(r.At+16, r, true, &s)
		c.Calls = s.Kernel
		return c, ok
	case KindFork, KindExit:
		if r.End-r.At < 24 {
			return c, false
		}
		c.Parent, c.TID, c.When = c.TID, int(int32(b.U32(r.At+8))), int64(b.U64(r.At+16))
		return c, true
	case KindComm:
		if r.End-r.At < 8+idBytes {
			return c, false
		}
		name := make([]byte, min(r.End-idBytes-r.At-8, unix.PathMax))
		b.CopyTo(name, r.At+8)
		name, _, _ = bytes.Cut(name, []byte{0})
		c.Comm, c.Exec, c.When = string(name), r.Misc&commExec != 0, int64(b.U64(r.End-8))
		return c, true
	}
	return c, false
}
