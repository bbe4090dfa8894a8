//go:build linux

package ring

import (
	"encoding/binary"

	"goprof/arch"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
)

// This file reads the records that the kernel writes into a ring (include/uapi/linux/perf_event.h, enum
// perf_event_type): a header of 8 bytes {u32 type, u16 misc, u16 size}, then fields that depend on the type. The length
// of each record is a multiple of 8 bytes. So a word never crosses the ring's end. A run of bytes may cross it.

// The records that goprof reads.
const (
	perfLost        = 2  // {u64 id, lost}
	KindThrottle    = 5  // {u64 time, id, stream}
	KindSample      = 9  // see parseSample
	perfLostSamples = 13 // {u64 lost}
	// a switch of a thread with an event of its own: {u32 pid, tid; u64 time}, as sample_id_all has it
	KindSwitch       = 14
	SwitchReady      = 1 << 14 // PERF_RECORD_MISC_SWITCH_OUT_PREEMPT: the CPU was taken from the thread (Linux 4.17)
	HeaderSize       = 8
	perfMiscCPUMode  = 7
	perfMiscInKernel = 1
)

// perfABI64 is PERF_SAMPLE_REGS_ABI_64. A sample without registers (of a thread that is just ending, say) has 0 there.
const perfABI64 = 2

// Bytes are the bytes of a ring, a power of two of them. Positions run on and are never wrapped.
type Bytes []byte

// U64 is the word at a position, whose last three bits do not count.
func (b Bytes) U64(at uint64) uint64 {
	return binary.LittleEndian.Uint64(b[at&uint64(len(b)-1)&^7:])
}

// U32 reads half a word; at is a multiple of 4.
func (b Bytes) U32(at uint64) uint32 {
	return binary.LittleEndian.Uint32(b[at&uint64(len(b)-1)&^3:])
}

// CopyTo copies len(to) bytes, no more than the ring has, to to.
func (b Bytes) CopyTo(to []byte, at uint64) {
	at &= uint64(len(b) - 1)
	n := copy(to, b[at:])
	copy(to[n:], b)
}

// Record is one record: its type, its flags, and the place of what follows the header.
type Record struct {
	Kind, Misc uint32
	At, End    uint64
	before     *spanBefore
}

// Next reads the header at tail; head is how far the kernel has written. ok is false if there is no whole record, or
// where the header cannot be that of a record: then the bytes are of no use.
func (b Bytes) Next(tail, head uint64) (r Record, ok bool) {
	have := head - tail
	if have < HeaderSize || have > uint64(len(b)) || tail&7 != 0 {
		return r, false
	}
	r.Kind = b.U32(tail)
	word := b.U32(tail + 4)
	size := uint64(word >> 16)
	if size < HeaderSize || size&7 != 0 || size > have {
		return r, false
	}
	r.Misc, r.At, r.End = word&0xffff, tail+HeaderSize, tail+size
	return r, true
}

// Sample is a sample of a thread in user space, or on its way back there. It says where the thread was and when, and
// where the copy of its stack lies in the ring.
type Sample struct {
	PID, TID int
	When     int64
	inKernel bool // the registers are those with which the thread entered the kernel
	Regs     arch.Regs
	Unknown  uint64 // of regs
	HasRegs  bool
	StackAt  uint64
	stackLen int      // bytes that could be copied
	asked    int      // bytes that there was room for
	Kernel   []uint64 // the kernel's frames, where these are wanted; reused
	Context  look.Context
}

// Parse reads a sample as perfSampleType asks for it:
//
//	u32 pid, tid; u64 time; [u64 n; u64 ips[n]]; u64 abi, regs[]; u64 size; bytes[size]; u64 copied, if size is not 0
//
// ips are there where the kernel's frames are wanted.
func (b Bytes) Parse(r Record, cpu *arch.CPU, chain bool, s *Sample) bool {
	at := r.At
	if r.End-at < 3*8 {
		return false
	}
	s.PID, s.TID = int(int32(b.U32(at))), int(int32(b.U32(at+4)))
	s.When, s.Context = int64(b.U64(at+8)), r.before.of(s.TID)
	at, ok := b.ParseChain(at+16, r, chain, s)
	return ok && b.ParseMachine(at, r, cpu, s)
}

// maxKernelFrames bounds the kernel's frames that are kept; kernel.perf_event_max_stack is 127.
const maxKernelFrames = 256

// Marks between the addresses of a call chain (PERF_CONTEXT_KERNEL ...): as signed numbers they are -4095 to -1.
const perfContextMax = ^uint64(4095) + 1

// ParseChain reads the kernel's frames, if chain asks for them, and returns the position behind them.
func (b Bytes) ParseChain(at uint64, r Record, chain bool, s *Sample) (uint64, bool) {
	s.Kernel = s.Kernel[:0]
	if !chain {
		return at, true
	}
	if r.End-at < 8 {
		return at, false
	}
	n := b.U64(at)
	at += 8
	if n > (r.End-at)/8 {
		return at, false
	}
	for i := range n {
		if ip := b.U64(at + 8*i); ip < perfContextMax && len(s.Kernel) < maxKernelFrames {
			s.Kernel = append(s.Kernel, ip)
		}
	}
	return at + 8*n, true
}

// ParseMachine reads the registers and the stack, with which a sample ends.
func (b Bytes) ParseMachine(at uint64, r Record, cpu *arch.CPU, s *Sample) bool {
	if r.End-at < 8 {
		return false
	}
	s.inKernel = r.Misc&perfMiscCPUMode == perfMiscInKernel
	abi := b.U64(at)
	at += 8
	s.HasRegs, s.Unknown = false, 0
	if abi != 0 {
		n := uint64(cpu.Perf.Len()) * 8
		if r.End-at < n {
			return false
		}
		from := at
		s.Unknown = cpu.Perf.Decode(func(i int) uint64 { return b.U64(from + uint64(i)*8) }, &s.Regs)
		s.HasRegs = abi == perfABI64
		at += n
	}
	if r.End-at < 8 {
		return false
	}
	size := b.U64(at)
	at += 8
	s.StackAt, s.stackLen, s.asked = at, 0, 0
	if size == 0 {
		return true
	}
	if size&7 != 0 || size > r.End-at || r.End-at-size < 8 {
		return false
	}
	copied := b.U64(at + size)
	if copied > size {
		return false
	}
	s.stackLen, s.asked = int(copied), int(size)
	return true
}

// parseLost says how many records the kernel had no room for.
func (b Bytes) parseLost(r Record) int64 {
	at := r.At
	if r.Kind == perfLost {
		at += 8
	}
	if r.End < at || r.End-at < 8 {
		return 0
	}
	const believable = 1 << 40
	return int64(min(b.U64(at), believable))
}

// OwnStack is how much of the copy is the thread's own stack, and whether that is less than all. need is how much the
// thread had, 0 if that is not known.
func (s *Sample) OwnStack(sp uint64, hint ptrace.Hint) (size int, cut bool, need uint64) {
	if hint.StackTop <= sp || sp < hint.StackLow {
		return s.stackLen, s.stackLen == s.asked, 0
	}
	need = hint.StackTop - sp
	return int(min(uint64(s.stackLen), need)), uint64(s.stackLen) < need, need
}

// Fill makes a look of a sample. It returns how much stack there was, 0 if that is not known.
func (b Bytes) Fill(s *Sample, cpu *arch.CPU, hint ptrace.Hint, to *look.Look) (need uint64) {
	snap, size := &to.Snapshot, 0
	to.When, to.Context = s.When, s.Context
	snap.TID, snap.Regs, snap.Unknown, snap.SP = s.TID, s.Regs, s.Unknown, s.Regs[cpu.SP]
	snap.SideAddr, snap.RunsOn = hint.Side, true
	size, snap.Cut, need = s.OwnStack(snap.SP, hint)
	if cap(snap.Stack) < size { // no larger than needed: many looks may wait, and most stacks are small
		snap.Stack = make([]byte, (size+StackStep-1)/StackStep*StackStep)
	}
	snap.Stack = snap.Stack[:size]
	b.CopyTo(snap.Stack, s.StackAt)
	to.Kernel = append(to.Kernel, s.Kernel...)
	return need
}

// StackStep is in what steps a look's memory for a stack grows, and the copies of perf.
const StackStep = 4 << 10

// Word reads a word from the bytes of a record. These bytes are not aligned as words are.
func (b Bytes) Word(at uint64) uint64 { return uint64(b.U32(at)) | uint64(b.U32(at+4))<<32 }
