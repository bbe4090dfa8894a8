//go:build linux

package perf

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/process"
	"goprof/sampler/bpf"
	"goprof/sampler/ptrace"
	"goprof/sampler/ring"
	"goprof/sampler/span"
)

// A sample of perf_event has registers and a stack. A BPF program copies other memory that must be of the same moment.
// The kernel runs the program in the interrupt in which it takes the sample, right before taking it
// (kernel/events/core.c, bpf_overflow_handler). The program reads the thread's Side and follows the trail, and stores
// what it finds in memory that it shares with goprof. It reads only memory that is present, and writes nothing of the
// target's.
//
// Each thread with Hint.Soon has a program of its own, in which the facts about the thread are constants. The programs
// need Linux 5.5 (bpf_probe_read_user, maps that can be mapped) and CAP_BPF with CAP_PERFMON. Without these, such
// threads are read late, as engine.go says.

// The memory of one thread: a head, and two halves that the program fills in turn.
const (
	copyTurns = 0 // how often the program has run
	copyRight = 8 // Trail.Right, which goprof may change
	copyHead  = 64

	// The fields of a half.
	halfWhen       = 0 // CLOCK_MONOTONIC; 0: the half is being written
	halfTurn       = 8
	halfSideSize   = 16
	halfOwner      = 24 // the owner's address
	halfHandle     = 32 // the word that the handle held
	halfObject     = 40 // the object's address
	halfBlocks     = 48 // the number of blocks
	halfBlock      = 56 // for each block: its address, that of its used part, and how many bytes of that were copied
	halfBlockSize  = 24
	halfSide       = 192
	halfOwnerBytes = halfSide + ptrace.MaxSide
	halfObjectData = halfOwnerBytes + process.MaxTrailHead
	halfHeads      = halfObjectData + process.MaxTrailObject
	// The used parts of the blocks.
	halfUsed     = halfHeads + process.MaxTrailBlocks*process.MaxTrailHead
	halfUsedMost = 48 << 10
	halfSize     = halfUsed + 2*halfUsedMost // twice, because the verifier adds the largest offset and the largest size

	copySize = copyHead + 2*halfSize
)

// perfCopier is the program of one thread, and its memory.
type perfCopier struct {
	mem   []byte
	prog  int
	hint  ptrace.Hint // the hint for which the program was made
	trail process.Trail
}

// maxCopiers bounds how many threads have a copier: each takes 200 KB of kernel memory.
const maxCopiers = 128

// arm gives a thread's events the program that copies memory, if the thread is to have one. The facts about the trail
// come with the first samples. An event keeps its program. So for another program the thread gets new events, and arm
// is called again.
func (r *perfRun) arm(w *perfThread) {
	trail := r.cfg.Trail
	hint := &w.th.Hint
	if r.noCopies || trail == nil || !trail.Known || hint.Side == 0 || hint.SideLen <= 0 ||
		hint.SideLen > ptrace.MaxSide ||
		trail.Frame < 0 || trail.Frame > hint.SideLen-8 {
		return
	}
	if w.copier != nil {
		if w.copier.fits(hint, trail) {
			w.copier.setRight(trail.Right)
			return
		}
		r.disarm(w)
		r.rewatch(w, w.copies.stack)
		return
	}
	if r.copiers >= maxCopiers {
		return
	}
	if w.spanned {
		r.rewatch(w, w.copies.stack)
		return
	}
	c, err := newCopier(*hint, trail, r.rings.spans.prompt)
	if err != nil {
		r.noCopies = true
		return
	}
	w.copier = c
	r.copiers++
	r.noCopies = !w.attach(c.prog) || r.noCopies
}

// attach makes a program run with the samples of a thread's events.
func (w *perfThread) attach(prog int) bool {
	for i := range w.events {
		if fd := w.events[i].fd; fd >= 0 && unix.IoctlSetInt(int(fd), unix.PERF_EVENT_IOC_SET_BPF, prog) != nil {
			return false
		}
	}
	return true
}

func (r *perfRun) disarm(w *perfThread) {
	if w.copier != nil {
		w.copier.close()
		w.copier = nil
		r.copiers--
	}
}

func newCopier(hint ptrace.Hint, trail *process.Trail, spans *span.Outputs) (*perfCopier, error) {
	page := unix.Getpagesize()
	fd, mem, err := bpf.NewMapped((copySize + page - 1) / page * page)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd) // the program and the mapping keep the map alive
	c := &perfCopier{mem: mem, hint: hint, trail: *trail}
	c.setRight(trail.Right)
	c.prog, err = spans.LoadForPerf(func(o *span.Outputs) *bpf.Code { return copyProgram(fd, &hint, trail, o).Code })
	if err != nil {
		unix.Munmap(mem)
		return nil, err
	}
	return c, nil
}

func (c *perfCopier) close() {
	unix.Close(c.prog)
	unix.Munmap(c.mem)
}

// fits reports whether the program still has the right constants.
func (c *perfCopier) fits(hint *ptrace.Hint, trail *process.Trail) bool {
	now := *trail
	now.Right = c.trail.Right
	return c.trail == now && c.hint.Side == hint.Side && c.hint.SideLen == hint.SideLen && c.hint.Handle == hint.Handle
}

func (c *perfCopier) setRight(right uint8) { atomic.StoreUint64(c.word(copyRight), uint64(right)) }

func (c *perfCopier) word(at int) *uint64 { return (*uint64)(unsafe.Pointer(&c.mem[at])) }

// copyCode is the program of one copier as it is written.
type copyCode struct{ *bpf.Code }

// copyProgram makes the BPF program of one thread. Register r6 points at the half of the shared memory that this run
// fills, and r7 holds an address in the target. The program's stack holds the time (-8), the shift of references (-16),
// room for a word (-24), and how many bytes of the used parts were copied (-32).
func copyProgram(fd int, hint *ptrace.Hint, w *process.Trail, spans *span.Outputs) *copyCode {
	c := &copyCode{bpf.New()}
	c.Mov(bpf.R6, bpf.R1)
	spans.Write(c.Code, -ring.SpanSize)
	c.Jump(bpf.JumpEqImm, bpf.R0, 0, 0, "no sample")
	c.Call(bpf.KtimeGetNS)
	c.Store(bpf.R10, -8, bpf.R0)
	c.Value(bpf.R6, fd)
	c.Load(bpf.Load64, bpf.R7, bpf.R6, copyRight)
	c.Store(bpf.R10, -16, bpf.R7)
	c.Imm(bpf.MovImm, bpf.R7, 0)
	c.Store(bpf.R10, -32, bpf.R7)
	c.Load(bpf.Load64, bpf.R7, bpf.R6, copyTurns)
	c.Mov(bpf.R8, bpf.R7)
	c.Imm(bpf.AddImm, bpf.R7, 1)
	c.Store(bpf.R6, copyTurns, bpf.R7)
	c.Imm(bpf.AndImm, bpf.R8, 1)
	c.Imm(bpf.MulImm, bpf.R8, halfSize)
	c.Op(bpf.Add, bpf.R6, bpf.R8, 0, 0)
	c.Imm(bpf.AddImm, bpf.R6, copyHead)
	for at := 0; at < halfSide; at += 8 {
		c.Zero(bpf.R6, at)
	}
	c.Store(bpf.R6, halfTurn, bpf.R7)

	c.LoadWide(bpf.R3, hint.Side)
	c.read(halfSide, hint.SideLen, "end")
	c.Imm(bpf.MovImm, bpf.R1, hint.SideLen)
	c.Store(bpf.R6, halfSideSize, bpf.R1)
	c.Load(bpf.Load64, bpf.R7, bpf.R6, halfSide+w.Frame)
	c.Jump(bpf.JumpEqImm, bpf.R7, 0, 0, "end")
	c.Mov(bpf.R3, bpf.R7)
	c.Imm(bpf.AddImm, bpf.R3, w.Owner)
	c.readWord("end")
	c.Mov(bpf.R3, bpf.R7)
	c.read(halfOwnerBytes, w.OwnerSize, "end")
	c.Store(bpf.R6, halfOwner, bpf.R7)
	if hint.Handle != 0 && w.ObjectSize > 0 {
		c.LoadWide(bpf.R3, hint.Handle)
		c.readWord("blocks")
		c.Store(bpf.R6, halfHandle, bpf.R7)
		c.Load(bpf.Load64, bpf.R8, bpf.R10, -16)
		c.Op(bpf.Right, bpf.R7, bpf.R8, 0, 0)
		c.Mov(bpf.R3, bpf.R7)
		c.read(halfObjectData, w.ObjectSize, "blocks")
		c.Store(bpf.R6, halfObject, bpf.R7)
	}
	c.Label("blocks")
	if w.HeadSize > 0 {
		c.reference(w, halfOwnerBytes+w.First)
		for i := range process.MaxTrailBlocks {
			c.block(w, i)
		}
	}
	c.Label("end")
	c.Load(bpf.Load64, bpf.R1, bpf.R10, -8)
	c.Store(bpf.R6, halfWhen, bpf.R1)
	c.Imm(bpf.MovImm, bpf.R0, 1) // the sample is wanted
	c.Label("no sample")
	c.Op(bpf.Exit, 0, 0, 0, 0)
	return c
}

// read copies size bytes from r3 to a place in the half. It jumps to otherwise if they cannot be read.
func (c *copyCode) read(to, size int, otherwise string) {
	c.Mov(bpf.R1, bpf.R6)
	c.Imm(bpf.AddImm, bpf.R1, to)
	c.Imm(bpf.MovImm, bpf.R2, size)
	c.Call(bpf.ProbeReadUser)
	c.Jump(bpf.JumpNeImm, bpf.R0, 0, 0, otherwise)
}

// readWord reads the word at r3 into r7.
func (c *copyCode) readWord(otherwise string) {
	c.Mov(bpf.R1, bpf.R10)
	c.Imm(bpf.AddImm, bpf.R1, -24)
	c.Imm(bpf.MovImm, bpf.R2, 8)
	c.Call(bpf.ProbeReadUser)
	c.Jump(bpf.JumpNeImm, bpf.R0, 0, 0, otherwise)
	c.Load(bpf.Load64, bpf.R7, bpf.R10, -24)
}

// reference decodes the reference at a place in the half into r7. It jumps to the end if the reference is nil.
func (c *copyCode) reference(w *process.Trail, at int) {
	if !w.Narrow {
		c.Load(bpf.Load64, bpf.R7, bpf.R6, at)
		c.Load(bpf.Load64, bpf.R8, bpf.R10, -16)
		c.Op(bpf.Right, bpf.R7, bpf.R8, 0, 0)
		c.Jump(bpf.JumpEqImm, bpf.R7, 0, 0, "end")
		return
	}
	c.Load(bpf.Load32, bpf.R7, bpf.R6, at)
	c.Jump(bpf.JumpEqImm, bpf.R7, 0, 0, "end")
	c.Imm(bpf.LeftImm, bpf.R7, int(w.Left))
	c.LoadWide(bpf.R1, w.Base)
	c.Op(bpf.Add, bpf.R7, bpf.R1, 0, 0)
}

// block copies block i, which is at r7, and sets r7 to the next block.
func (c *copyCode) block(w *process.Trail, i int) {
	head, note := halfHeads+i*process.MaxTrailHead, halfBlock+i*halfBlockSize
	c.Mov(bpf.R3, bpf.R7)
	c.read(head, w.HeadSize, "end")
	c.Store(bpf.R6, note, bpf.R7)
	c.Imm(bpf.MovImm, bpf.R1, i+1)
	c.Store(bpf.R6, halfBlocks, bpf.R1)
	c.Load(bpf.Load32, bpf.R8, bpf.R6, head+w.Begin)
	c.Load(bpf.Load32, bpf.R9, bpf.R6, head+w.End)
	if w.Less != 0 {
		c.Load(bpf.Load32, bpf.R1, bpf.R6, head+w.Less)
		c.Op(bpf.Sub, bpf.R9, bpf.R1, 0, 0)
	}
	next := "next" + string(rune('0'+i))
	c.Jump(bpf.JumpGe, bpf.R8, bpf.R9, 0, next)
	c.Op(bpf.Sub, bpf.R9, bpf.R8, 0, 0)
	c.Jump(bpf.JumpGtImm, bpf.R9, 0, (halfUsedMost-w.Below)/8, next)
	c.Imm(bpf.LeftImm, bpf.R9, 3)
	c.Imm(bpf.AddImm, bpf.R9, w.Below)
	c.Load(bpf.Load64, bpf.R1, bpf.R10, -32)
	c.Mov(bpf.R2, bpf.R1)
	c.Op(bpf.Add, bpf.R2, bpf.R9, 0, 0)
	c.Jump(bpf.JumpGtImm, bpf.R2, 0, halfUsedMost, next)
	c.Store(bpf.R10, -32, bpf.R2)
	c.Imm(bpf.LeftImm, bpf.R8, 3)
	c.Op(bpf.Add, bpf.R8, bpf.R7, 0, 0)
	c.Imm(bpf.AddImm, bpf.R8, w.HeadSize-w.Below)
	c.Store(bpf.R6, note+8, bpf.R8)
	c.Op(bpf.Add, bpf.R1, bpf.R6, 0, 0)
	c.Imm(bpf.AddImm, bpf.R1, halfUsed)
	c.Mov(bpf.R2, bpf.R9)
	c.Mov(bpf.R3, bpf.R8)
	c.Call(bpf.ProbeReadUser)
	c.Jump(bpf.JumpNeImm, bpf.R0, 0, 0, "end")
	c.Store(bpf.R6, note+16, bpf.R9)
	c.Label(next)
	c.reference(w, head+w.Next)
}

// take adds to a sample the memory that the BPF program copied for it. It returns false if there is no such copy. The
// program runs once for each sample: some microseconds after the sample's time was taken, or, up to Linux 6.2, before.
// The runs of other samples are an interval away. So the run nearest in time belongs to the sample.
func (c *perfCopier) take(when, interval int64, snap *process.Snapshot) bool {
	best, bestWhen := -1, uint64(0)
	nearest := min(copyDelay, interval/2)
	for _, half := range [2]int{copyHead, copyHead + halfSize} {
		at := atomic.LoadUint64(c.word(half + halfWhen))
		if away := max(int64(at)-when, when-int64(at)); at != 0 && away < nearest {
			best, bestWhen, nearest = half, at, away
		}
	}
	if best < 0 {
		return false
	}
	turn := atomic.LoadUint64(c.word(best + halfTurn))
	c.keep(c.mem[best:best+halfSize], snap)
	// Was the half overwritten meanwhile?
	if atomic.LoadUint64(c.word(copyTurns)) >= turn+2 || atomic.LoadUint64(c.word(best+halfWhen)) != bestWhen {
		snap.Side = snap.Side[:0]
		snap.Trail.Reset()
		return false
	}
	return true
}

// copyDelay bounds the time between a sample and its run of the program, in nanoseconds: interrupts are off between the
// two. If it takes longer, the virtual machine had no CPU in between, and the run may belong to another sample.
const copyDelay = int64(100_000)

// keep makes a snapshot's Side and trail from a half. The counts in the half can be trusted: the program made them.
func (c *perfCopier) keep(half []byte, snap *process.Snapshot) {
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(half[at:]) }
	add := func(addr uint64, at, size int) {
		snap.Trail.List = append(snap.Trail.List, process.Piece{Addr: addr, Size: size})
		snap.Trail.Bytes = append(snap.Trail.Bytes, half[at:at+size]...)
	}
	w := &c.trail
	snap.Trail.Reset()
	if size := min(word(halfSideSize), ptrace.MaxSide); size > 0 {
		snap.Side = append(snap.Side[:0], half[halfSide:halfSide+size]...)
		snap.SideAddr = c.hint.Side
	}
	if owner := word(halfOwner); owner != 0 {
		add(owner, halfOwnerBytes, w.OwnerSize)
	}
	if c.hint.Handle != 0 && word(halfHandle) != 0 {
		add(c.hint.Handle, halfHandle, 8)
	}
	if object := word(halfObject); object != 0 {
		add(object, halfObjectData, w.ObjectSize)
	}
	used := halfUsed
	for i := range int(min(word(halfBlocks), process.MaxTrailBlocks)) {
		note := halfBlock + i*halfBlockSize
		add(word(note), halfHeads+i*process.MaxTrailHead, w.HeadSize)
		if size := int(min(word(note+16), uint64(halfUsed+halfUsedMost-used))); size > 0 {
			add(word(note+8), used, size)
			used += size
		}
	}
}
