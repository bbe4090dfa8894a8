//go:build linux

package sampler

import (
	"encoding/binary"

	"goprof/arch"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
)

// This file reads the records that the kernel writes into a ring (include/uapi/linux/perf_event.h, enum
// perf_event_type): a header of 8 bytes {u32 type, u16 misc, u16 size}, then what its type says. All records are
// multiples of 8 bytes long. So a word never lies across the ring's end; a run of bytes may.

// The records that goprof reads.
const (
	perfLost        = 2  // {u64 id, lost}
	perfThrottle    = 5  // {u64 time, id, stream}
	perfSample      = 9  // see parseSample
	perfLostSamples = 13 // {u64 lost}
	// a switch of a thread with an event of its own: {u32 pid, tid; u64 time}, as sample_id_all has it
	perfSwitch          = 14
	perfMiscSwitchReady = 1 << 14 // PERF_RECORD_MISC_SWITCH_OUT_PREEMPT: the CPU was taken from the thread (Linux 4.17)
	perfHeader          = 8
	perfMiscCPUMode     = 7
	perfMiscInKernel    = 1
)

// perfABI64 is PERF_SAMPLE_REGS_ABI_64. A sample without registers (of a thread that is just ending, say) has 0 there.
const perfABI64 = 2

// ringBytes are the bytes of a ring, a power of two of them. Positions run on and are never wrapped.
type ringBytes []byte

func (b ringBytes) u64(at uint64) uint64 {
	return binary.LittleEndian.Uint64(b[at&uint64(len(b)-1)&^7:])
}

// u32 reads half a word; at is a multiple of 4.
func (b ringBytes) u32(at uint64) uint32 {
	return binary.LittleEndian.Uint32(b[at&uint64(len(b)-1)&^3:])
}

// copyTo copies len(to) bytes, no more than the ring has, to to.
func (b ringBytes) copyTo(to []byte, at uint64) {
	at &= uint64(len(b) - 1)
	n := copy(to, b[at:])
	copy(to[n:], b)
}

// perfRecord is one record: its type, its flags, and the place of what follows the header.
type perfRecord struct {
	kind, misc uint32
	at, end    uint64
}

// next reads the header at tail; head is how far the kernel has written. ok is false where there is no whole record, or
// where the header cannot be that of a record: then the bytes are of no use.
func (b ringBytes) next(tail, head uint64) (r perfRecord, ok bool) {
	have := head - tail
	if have < perfHeader || have > uint64(len(b)) || tail&7 != 0 {
		return r, false
	}
	r.kind = b.u32(tail)
	word := b.u32(tail + 4)
	size := uint64(word >> 16)
	if size < perfHeader || size&7 != 0 || size > have {
		return r, false
	}
	r.misc, r.at, r.end = word&0xffff, tail+perfHeader, tail+size
	return r, true
}

// rawSample is a sample of a thread in user space, or on its way back there. It says where the thread was and when, and
// where the copy of its stack lies in the ring.
type rawSample struct {
	pid, tid int
	when     int64
	inKernel bool // the registers are those with which the thread entered the kernel
	regs     arch.Regs
	unknown  uint64 // of regs
	hasRegs  bool
	stackAt  uint64
	stackLen int      // bytes that could be copied
	asked    int      // bytes that there was room for
	kernel   []uint64 // the kernel's frames, where these are wanted; reused
}

// parse reads a sample as perfSampleType asks for it:
//
//	u32 pid, tid; u64 time; [u64 n; u64 ips[n]]; u64 abi, regs[]; u64 size; bytes[size]; u64 copied, if size is not 0
//
// ips are there where the kernel's frames are wanted.
func (b ringBytes) parse(r perfRecord, cpu *arch.CPU, chain bool, s *rawSample) bool {
	at := r.at
	if r.end-at < 3*8 {
		return false
	}
	s.pid, s.tid = int(int32(b.u32(at))), int(int32(b.u32(at+4)))
	s.when = int64(b.u64(at + 8))
	at, ok := b.parseChain(at+16, r, chain, s)
	return ok && b.parseMachine(at, r, cpu, s)
}

// maxKernelFrames bounds the kernel's frames that are kept; kernel.perf_event_max_stack is 127.
const maxKernelFrames = 256

// Marks between the addresses of a call chain (PERF_CONTEXT_KERNEL ...): as signed numbers they are -4095 to -1.
const perfContextMax = ^uint64(4095) + 1

// parseChain reads the kernel's frames, if chain asks for them, and returns the position behind them.
func (b ringBytes) parseChain(at uint64, r perfRecord, chain bool, s *rawSample) (uint64, bool) {
	s.kernel = s.kernel[:0]
	if !chain {
		return at, true
	}
	if r.end-at < 8 {
		return at, false
	}
	n := b.u64(at)
	at += 8
	if n > (r.end-at)/8 {
		return at, false
	}
	for i := range n {
		if ip := b.u64(at + 8*i); ip < perfContextMax && len(s.kernel) < maxKernelFrames {
			s.kernel = append(s.kernel, ip)
		}
	}
	return at + 8*n, true
}

// parseMachine reads the registers and the stack, with which a sample ends.
func (b ringBytes) parseMachine(at uint64, r perfRecord, cpu *arch.CPU, s *rawSample) bool {
	if r.end-at < 8 {
		return false
	}
	s.inKernel = r.misc&perfMiscCPUMode == perfMiscInKernel
	abi := b.u64(at)
	at += 8
	s.hasRegs, s.unknown = false, 0
	if abi != 0 {
		n := uint64(cpu.Perf.Len()) * 8
		if r.end-at < n {
			return false
		}
		from := at
		s.unknown = cpu.Perf.Decode(func(i int) uint64 { return b.u64(from + uint64(i)*8) }, &s.regs)
		s.hasRegs = abi == perfABI64
		at += n
	}
	if r.end-at < 8 {
		return false
	}
	size := b.u64(at)
	at += 8
	s.stackAt, s.stackLen, s.asked = at, 0, 0
	if size == 0 {
		return true
	}
	if size&7 != 0 || size > r.end-at || r.end-at-size < 8 {
		return false
	}
	copied := b.u64(at + size)
	if copied > size {
		return false
	}
	s.stackLen, s.asked = int(copied), int(size)
	return true
}

// parseLost tells how many records the kernel had no room for.
func (b ringBytes) parseLost(r perfRecord) int64 {
	at := r.at
	if r.kind == perfLost {
		at += 8
	}
	if r.end < at || r.end-at < 8 {
		return 0
	}
	const believable = 1 << 40
	return int64(min(b.u64(at), believable))
}

// ownStack is how much of the copy is the thread's own stack, and whether that is less than all. need is how much the
// thread had, 0 if that is not known.
func (s *rawSample) ownStack(sp uint64, hint ptrace.Hint) (size int, cut bool, need uint64) {
	if hint.StackTop <= sp || sp < hint.StackLow {
		return s.stackLen, s.stackLen == s.asked, 0
	}
	need = hint.StackTop - sp
	return int(min(uint64(s.stackLen), need)), uint64(s.stackLen) < need, need
}

// fill makes a look of a sample. It returns how much stack there was, 0 if that is not known.
func (b ringBytes) fill(s *rawSample, cpu *arch.CPU, hint ptrace.Hint, to *look.Look) (need uint64) {
	snap, size := &to.Snapshot, 0
	to.When = s.when
	snap.TID, snap.Regs, snap.Unknown, snap.SP = s.tid, s.regs, s.unknown, s.regs[cpu.SP]
	snap.SideAddr, snap.RunsOn = hint.Side, true
	size, snap.Cut, need = s.ownStack(snap.SP, hint)
	if cap(snap.Stack) < size { // no larger than needed: many looks may wait, and most stacks are small
		snap.Stack = make([]byte, (size+stackStep-1)/stackStep*stackStep)
	}
	snap.Stack = snap.Stack[:size]
	b.copyTo(snap.Stack, s.stackAt)
	to.Kernel = append(to.Kernel, s.kernel...)
	return need
}
