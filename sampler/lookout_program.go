//go:build linux

package sampler

import (
	"strconv"
	"unsafe"

	"goprof/arch"
	"goprof/process"
)

// The program of a lookout. It does what sentry.isNews does.

const (
	bpfMapPerCPU = 6
	bpfMapRing   = 27

	bpfRingOutput  = 130 // bpf_ringbuf_output(map, data, size, flags)
	bpfCurrentTask = 158 // bpf_get_current_task_btf
	bpfTaskRegs    = 175 // bpf_task_pt_regs(task): the registers with which the thread entered the kernel
	bpfLoop        = 181 // bpf_loop(times, function, address for it, 0)
	bpfRingForce   = 2   // BPF_RB_FORCE_WAKEUP: who waits for the ring is woken up in any case
	bpfJumpNe      = 0x5d
	bpfJumpLt      = 0xad // unsigned
)

const (
	// partLooked is how much of a stack is read together, lineLooked how much of that is looked at in one go.
	partLooked = 1 << partShift
	partShift  = 11
	lineLooked = 1 << lineShift
	lineShift  = 6

	// On the program's stack.
	lookoutLocals = -32
	localNew      = 0  // 1: there is something new
	localWords    = 8  // the address of this CPU's room for a part
	localFrom     = 16 // where the next part is
	localTo       = 24

	roomCode    = unsafe.Offsetof(lookoutRoom{}.code)
	roomBegun   = unsafe.Offsetof(lookoutRoom{}.begun)
	roomLimit   = unsafe.Offsetof(lookoutRoom{}.limit)
	roomCopied  = unsafe.Offsetof(lookoutRoom{}.copied)
	roomThreads = unsafe.Offsetof(lookoutRoom{}.threads)

	threadTop  = int(unsafe.Offsetof(guardedThread{}.top))
	threadTID  = int(unsafe.Offsetof(guardedThread{}.tid))
	threadSize = int(unsafe.Sizeof(guardedThread{}))
)

// lookoutCode is the program being written, with its maps.
type lookoutCode struct {
	*bpfCode
	room, bell, parts int
}

// lookoutProgram is the program for one process. Registers: r6 is the end of what is
// looked at, r7 the thread, r8 where the thread's stack begins, r9 its stack pointer.
func lookoutProgram(pid int, cpu *arch.CPU, room, bell, parts int) *bpfCode {
	c := lookoutCode{&bpfCode{jumps: map[string][]int{}}, room, bell, parts}
	c.call(bpfGetCurrentPIDTGID)
	c.mov(r7, r0)
	c.imm(bpfRightImm, r0, 32)
	c.jump(bpfJumpNeImm, r0, 0, pid, "not taken")
	c.count()
	c.knowThread()
	c.call(bpfCurrentTask)
	c.mov(r1, r0)
	c.call(bpfTaskRegs)
	c.mov(r9, r0)
	c.codeSpan()
	c.load(bpfLoad64, r3, r9, int(cpu.Probe.Offsets[cpu.PC]))
	c.ifNew("news", "known pc")
	if cpu.ReturnsInRegister {
		c.load(bpfLoad64, r3, r9, int(cpu.Probe.Offsets[cpu.LR]))
		c.ifNew("news", "known link")
	}
	c.load(bpfLoad64, r9, r9, int(cpu.Probe.Offsets[cpu.SP]))
	c.imm(bpfAndImm, r9, -8) // native code may move it by anything
	c.lookAtStack()
	c.label("news")
	c.zero(r10, lookoutLocals)
	c.mapFD(r1, c.bell)
	c.mov(r2, r10)
	c.imm(bpfAddImm, r2, lookoutLocals)
	c.imm(bpfMovImm, r3, 8)
	c.imm(bpfMovImm, r4, bpfRingForce)
	c.call(bpfRingOutput)
	c.label("taken")
	c.imm(bpfMovImm, r0, 1)
	c.op(bpfExit, 0, 0, 0, 0)
	c.label("not taken")
	c.imm(bpfMovImm, r0, 0)
	c.op(bpfExit, 0, 0, 0, 0)
	c.function("part")
	c.lookAtPart()
	c.function("line")
	c.lookAtLine()
	return c.bpfCode
}

// count counts a sample that is about to be written.
func (c lookoutCode) count() {
	c.valueAt(r1, c.room, roomBegun)
	c.imm(bpfMovImm, r2, 1)
	c.op(bpfAtomicAdd, r1, r2, 0, 0)
	c.load(bpfLoad64, r2, r1, 0)
	c.valueAt(r1, c.room, roomLimit)
	c.load(bpfLoad64, r1, r1, 0)
	c.jump(bpfJumpGe, r2, r1, 0, "news")
}

// knowThread puts into r8 where the stack of the thread r7 begins.
func (c lookoutCode) knowThread() {
	c.imm(bpfLeftImm, r7, 32) // the lower half is the thread
	c.imm(bpfRightImm, r7, 32)
	c.mov(r1, r7)
	c.imm(bpfAndImm, r1, knownTIDs-1)
	c.imm(bpfMulImm, r1, threadSize)
	c.valueAt(r8, c.room, roomThreads)
	c.op(bpfAdd, r8, r1, 0, 0)
	c.load(bpfLoad32, r1, r8, threadTID)
	c.jump(bpfJumpNe, r1, r7, 0, "news")
	c.load(bpfLoad64, r8, r8, threadTop)
	c.jump(bpfJumpEqImm, r8, 0, unwanted, "taken")
}

// lookAtStack looks at the stack from r9 on, up to r8 or as far as the kernel copies it.
func (c lookoutCode) lookAtStack() {
	c.valueAt(r1, c.room, roomCopied)
	c.load(bpfLoad64, r6, r1, 0)
	c.op(bpfAdd, r6, r9, 0, 0)
	c.jump(bpfJumpGe, r9, r8, 0, "to r6") // it is not known where the stack begins
	c.jump(bpfJumpGe, r8, r6, 0, "to r6")
	c.mov(r6, r8)
	c.label("to r6")
	c.zero(r10, lookoutLocals) // a key, too
	c.mapFD(r1, c.parts)
	c.mov(r2, r10)
	c.imm(bpfAddImm, r2, lookoutLocals)
	c.call(bpfLookUp)
	c.jump(bpfJumpEqImm, r0, 0, 0, "taken")
	c.store(r10, lookoutLocals+localWords, r0)
	c.store(r10, lookoutLocals+localFrom, r9)
	c.store(r10, lookoutLocals+localTo, r6)
	c.mov(r1, r6)
	c.op(bpfSub, r1, r9, 0, 0)
	c.imm(bpfRightImm, r1, partShift)
	c.imm(bpfAddImm, r1, 2) // the first and the last may be small
	c.mov(r3, r10)
	c.imm(bpfAddImm, r3, lookoutLocals)
	c.each("part")
	c.load(bpfLoad64, r1, r10, lookoutLocals+localNew)
	c.jump(bpfJumpEqImm, r1, 0, 0, "taken")
}

// each calls a function r1 times, or until the function returns 1. The function has the number of the call in r1, and
// what is in r3 now in r2.
func (c lookoutCode) each(function string) {
	c.functionAddress(r2, function)
	c.imm(bpfMovImm, r4, 0)
	c.call(bpfLoop)
}

// lookAtPart reads the next part of the stack and looks at it. r2 is the address of the locals. Registers: r6 is the
// locals, r7 the words, r8 where the part is, r9 how many bytes it has.
//
// No part crosses a page: where memory is not present, the kernel's copy ends, too.
func (c lookoutCode) lookAtPart() {
	c.mov(r6, r2)
	c.load(bpfLoad64, r7, r6, localWords)
	c.load(bpfLoad64, r8, r6, localFrom)
	c.mov(r1, r8)
	c.imm(bpfAndImm, r1, partLooked-1)
	c.imm(bpfMovImm, r9, partLooked)
	c.op(bpfSub, r9, r1, 0, 0)
	c.load(bpfLoad64, r1, r6, localTo)
	c.op(bpfSub, r1, r8, 0, 0)
	c.jump(bpfJumpGe, r1, r9, 0, "to r9")
	c.mov(r9, r1)
	c.jump(bpfJumpGtImm, r9, 0, partLooked, "end") // never; older verifiers do not know that r1 was less than r9
	c.label("to r9")
	c.imm(bpfAndImm, r9, partLooked|(partLooked-8))
	c.jump(bpfJumpEqImm, r9, 0, 0, "end")
	c.mov(r1, r9)
	c.imm(bpfAndImm, r1, partLooked|(partLooked-lineLooked))
	c.op(bpfAdd, r1, r7, 0, 0)
	for at := 0; at < lineLooked; at += 8 { // the rest of the last line
		c.zero(r1, at)
	}
	c.mov(r1, r7)
	c.mov(r2, r9)
	c.mov(r3, r8)
	c.call(bpfProbeReadUser)
	c.jump(bpfJumpNeImm, r0, 0, 0, "end")
	c.op(bpfAdd, r8, r9, 0, 0)
	c.store(r6, localFrom, r8)
	c.mov(r1, r9)
	c.imm(bpfAddImm, r1, lineLooked-1)
	c.imm(bpfRightImm, r1, lineShift)
	c.mov(r3, r6)
	c.each("line")
	c.load(bpfLoad64, r0, r6, localNew)
	c.imm(bpfAndImm, r0, 1)
	c.op(bpfExit, 0, 0, 0, 0)
	c.label("end")
	c.imm(bpfMovImm, r0, 1)
	c.op(bpfExit, 0, 0, 0, 0)
}

// lookAtLine looks at the words of one line of a part: r1 is the number of the line, r2 the address of the locals.
func (c lookoutCode) lookAtLine() {
	c.mov(r6, r2)
	c.load(bpfLoad64, r7, r2, localWords)
	c.imm(bpfAndImm, r1, partLooked/lineLooked-1)
	c.imm(bpfLeftImm, r1, lineShift)
	c.op(bpfAdd, r7, r1, 0, 0)
	c.codeSpan()
	for at := 0; at < lineLooked; at += 8 {
		c.load(bpfLoad64, r3, r7, at)
		c.ifNew("new", "known at "+strconv.Itoa(at))
	}
	c.imm(bpfMovImm, r0, 0)
	c.op(bpfExit, 0, 0, 0, 0)
	c.label("new")
	c.imm(bpfMovImm, r0, 1)
	c.store(r6, localNew, r0)
	c.op(bpfExit, 0, 0, 0, 0)
}

// codeSpan puts into r1 where the generated code begins, and into r2 how much there may be.
func (c lookoutCode) codeSpan() {
	c.valueAt(r5, c.room, roomCode)
	c.load(bpfLoad64, r1, r5, process.KnownBegin)
	c.load(bpfLoad64, r2, r5, process.KnownSize)
}

// ifNew is KnownCode.IsNew for the word in r3. The code's span is in r1 and r2. It destroys r0, r3, r4 and r5. A word
// that is not new goes on behind it.
func (c lookoutCode) ifNew(isNew, known string) {
	c.op(bpfSub, r3, r1, 0, 0)
	c.jump(bpfJumpGe, r3, r2, 0, known)
	c.valueAt(r5, c.room, roomCode)
	c.mov(r4, r3)
	c.op(bpfAdd, r4, r1, 0, 0)
	c.load(bpfLoad64, r0, r5, process.KnownFixedBegin)
	c.op(bpfSub, r4, r0, 0, 0)
	c.load(bpfLoad64, r0, r5, process.KnownFixedSize)
	c.jump(bpfJumpLt, r4, r0, 0, known)
	c.imm(bpfRightImm, r3, process.KnownShift)
	c.jump(bpfJumpGtImm, r3, 0, process.KnownPlaces-1, isNew)
	c.mov(r4, r3)
	c.imm(bpfRightImm, r4, 6)
	c.imm(bpfLeftImm, r4, 3)
	c.op(bpfAdd, r5, r4, 0, 0)
	c.load(bpfLoad64, r4, r5, process.KnownBits)
	c.imm(bpfAndImm, r3, 63)
	c.op(bpfRight, r4, r3, 0, 0)
	c.imm(bpfAndImm, r4, 1)
	c.jump(bpfJumpEqImm, r4, 0, 0, isNew)
	c.label(known)
}
