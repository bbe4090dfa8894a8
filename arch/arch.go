// Package arch holds what CPUs have in common, and says in what they differ. Each CPU is described in a folder of its
// own, amd64 or arm64. The two folders are twins: they have files of the same names, so that a diff of them shows what
// differs. Package cpus knows both. docs/contributing/new-cpu.md is the checklist for another CPU.
//
// A CPU is a value, not a build constraint: recorded walks of either CPU replay on any machine.
package arch

import "debug/elf"

// MaxLinkerStub is how much code a CPU's LinkerStub wants, MinLinkerStub how little may be enough.
const MaxLinkerStub, MinLinkerStub = 24, 16

// MaxSenderSP is how much code tells a CPU's SenderSP.
const MaxSenderSP = 8

// MaxRegs bounds the register numbers of all CPUs here.
const MaxRegs = 34

// SavedSP is the number of a register that no CPU has. In an Exit it stands for a stack pointer that lies in memory
// (Exit.Saved).
const SavedSP = MaxRegs

// Regs are the general registers of a thread, indexed by DWARF number, so that
// CFI rules need no translation. The program counter sits at CPU.PC.
type Regs [MaxRegs]uint64

// CPU describes one processor architecture: facts, and functions that read its code.
type CPU struct {
	Facts
	Code
}

// NewCPU makes a CPU of its facts and its functions.
func NewCPU(facts Facts, code Code) *CPU { return &CPU{facts, code} }

// Facts are what can be said of a CPU without a look at code.
type Facts struct {
	Name    string      // as GOARCH spells it
	Machine elf.Machine // as ELF headers spell it

	// Indexes into Regs. PC is the DWARF return address column on amd64. On arm64, where the return address column is
	// LR, it is a number that only goprof uses.
	PC, SP, FP int
	// ReturnsInRegister: a call leaves the return address in LR. Elsewhere calls push it, and LR is -1.
	ReturnsInRegister bool
	// ConstantsApart: few constants fit into the instruction that takes them, so compilers make them right before.
	ConstantsApart bool
	// FreesHeapBase: where the heap begins at zero, its register (see Inst.Narrow) may hold anything.
	FreesHeapBase bool
	LR            int
	// RA is the DWARF column that holds the return address.
	RA int

	// SyscallResult is the register in which the kernel returns.
	SyscallResult int
	// FourthArg is the register with the fourth argument of a system call.
	FourthArg int
	// DearClock is a flag in /proc/cpuinfo. It says that a guest must leave the virtual machine to set the timer of a
	// CPU, which takes long. It is empty for a CPU on which guests set the timer themselves.
	DearClock string

	// SyscallInst is the instruction of a system call. If a thread slept in a system call until it was stopped, its pc
	// is at that instruction: the kernel has moved the pc back, to make the call again. Then the register SyscallNumber
	// says which system call it is. SyscallInst is empty for a CPU on which DecodeRegs returns the system call, and
	// SyscallResult says what the kernel is going to do.
	SyscallInst   []byte
	SyscallNumber int

	// PrstatusSize is the size of the kernel's NT_PRSTATUS register set.
	PrstatusSize int

	// Locals says how code finds thread-local variables.
	Locals LocalsLayout

	// Perf says in which order perf_event_open gives the registers.
	Perf PerfLayout
	// Probe says where a program that the kernel runs at a probe finds the registers.
	Probe ProbeLayout

	// Signs: code addresses may carry a signature.
	Signs bool

	// Calls are the system calls by their numbers that say what a thread waits for.
	Calls map[int64]Call

	// Java names the registers that HotSpot's generated code gives a fixed meaning.
	Java JavaRegs
	// SenderSPVaries: JDKs differ in Java.SenderSP; Code.SenderSP finds it.
	SenderSPVaries bool

	// AtEntry says how code returns that has executed no instruction since it was called.
	AtEntry Exit

	// Interp lists the layouts of an interpreter frame; vmstructs chooses one.
	Interp InterpLayouts

	// CalleeSaved is the set (by bit) of registers that a C function leaves as they were.
	CalleeSaved uint64

	// CallStub is the frame that HotSpot's call stub makes between C++ and Java.
	CallStub CallStubLayout

	// MaxCall is the length of the longest call, MinInst that of the shortest instruction.
	MaxCall int
	MinInst uint32
	// ShortJump is how far a short jump or branch leads at most, from its own begin, 0 if there are none.
	ShortJump uint32

	// Sigreturn is the code to which a signal's handler returns. SigRegs is how far above the stack pointer the
	// interrupted registers are there, in the order and form of DecodeRegs. Sigreturn is empty for a CPU where unwind
	// rules describe all of that.
	Sigreturn []byte
	SigRegs   int
	// SigInfo is how far above the stack pointer the signal's siginfo_t is there.
	SigInfo int
}

// SetsBack reports whether the kernel sets a thread back to its system call before a tracer sees it (SyscallInst).
func (f *Facts) SetsBack() bool { return len(f.SyscallInst) > 0 }

// Code is what a CPU reads out of registers and code. A CPU that lacks one of these does not compile.
type Code interface {
	// DecodeRegs reads the kernel's NT_PRSTATUS register set. It returns the number
	// of the system call that the thread is in, or -1 for none or unknown.
	DecodeRegs(prstatus []byte, r *Regs) (syscall int64, ok bool)

	// Signed says which bits of a code address may carry a signature in a process whose memory ends at highest. It is
	// for callers that do not use ptrace: only by ptrace the kernel tells these bits. Without Signs it is 0.
	Signed(highest uint64) uint64

	// SenderSP finds Java.SenderSP in the code that ends with the call stub's call, MaxSenderSP bytes of it.
	SenderSP(code []byte) (reg int, ok bool)

	// NewTracer makes a reader of code ahead (see Exit). java are the registers of the JVM whose code
	// it is.
	NewTracer(java JavaRegs) Tracer

	// AfterLeave reports whether the code shortly before offset off drops a frame: then a Tracer is asked. It may say
	// yes too often.
	AfterLeave(code []byte, off uint64) bool

	// Enters returns how long the code at the start is that makes a standard frame (save
	// the frame pointer, set it to the stack pointer), 0 if there is no such code.
	Enters(code []byte) int

	// EndsInCall reports whether code, MaxCall bytes of it, may end in a call. Only then the address behind it can be a
	// return address.
	EndsInCall(code []byte) bool

	// CallTarget returns the target of the direct call in which code, MaxCall bytes of it, ends. ret is the address
	// behind the call.
	CallTarget(code []byte, ret uint64) (to uint64, ok bool)

	// Read reads the instruction at an offset in code. It returns false if there is none.
	Read(code []byte, at uint32, in *Inst) bool

	// Operands returns what the instruction at an offset reads and writes. It returns false if it does not know all
	// of that.
	Operands(code []byte, at uint32) (Operands, bool)

	// Condition returns the condition of the branch at the offset branch. compare is the offset of the comparison right
	// before the branch, or that of the branch itself if the branch compares. It returns false for anything but a
	// comparison of two whole numbers of 32 or 64 bits.
	Condition(code []byte, compare, branch uint32) (Condition, bool)

	// LongJumps calls each for all that looks like a jump or a branch of more than ShortJump bytes within code, and
	// perhaps for shorter ones. The bytes are not decoded one instruction after the other, so it may be something else.
	LongJumps(code []byte, each func(at, target uint32))

	// Intrinsics calls each for code that C2 makes in one piece for an intrinsic method, in order, until each returns
	// false. The name is that of HotSpot's function that makes it. No instruction need begin where a piece seems to.
	Intrinsics(code []byte, each func(name string, begin, end uint32) bool)

	// Pops returns how much the code behind a call takes off the stack at once: what was pushed for that call alone.
	Pops(code []byte) uint64

	// Trampoline returns where code that does nothing but jump goes on, with these registers.
	Trampoline(code []byte, r *Regs) (to uint64, ok bool)

	// ThreadSlot returns which word of the JavaThread code takes its stack pointer from, in its first
	// instructions.
	ThreadSlot(code []byte) (offset uint64, ok bool)

	// LinkerStub reports whether code was made by a linker for calls into another library. Such code jumps there, and
	// changes neither the stack nor the registers. The walker calls LinkerStub and Detour if there are no unwind rules.
	LinkerStub(code []byte) bool

	// Detour reports whether code is an instruction that a linker has moved away and a jump back, or that jump alone.
	// It returns the distance from the start of code to the place to which it jumps back. The unwind rules of that
	// place hold here, too.
	Detour(code []byte) (by int64, ok bool)
}

// JavaRegs are registers with a fixed meaning in generated code (numbers into Regs).
type JavaRegs struct {
	BCP      int // interpreter: bytecode pointer
	Method   int // interpreter, at method entry: Method*
	SenderSP int // at method entry: sp of the caller before adapters moved it
	ThrownAt int // when an exception leaves a method: the address to which the method would have returned
}

// ReturnSlots returns the range of words, from first to below end, one of which holds a function's return address. If a
// call pushes the address, that is the word below the caller's stack pointer. If a call puts it into the link register,
// it may be anywhere in the function's frame.
func (c *CPU) ReturnSlots(sp, callerSP uint64) (first, end uint64) {
	if c.ReturnsInRegister {
		return sp, callerSP
	}
	return callerSP - 8, callerSP
}

// InterpLayouts are the layouts of all JDKs.
type InterpLayouts struct {
	JDK8, JDK9 InterpLayout // up to JDK 8, and since 9
}

// InterpLayout gives the slots of an interpreter frame in words from the frame pointer.
type InterpLayout struct {
	SenderSP, LastSP, Method, Locals, BCP int
	// OperandSP: the operand stack has a stack pointer of its own, somewhere above the machine's, and LastSP keeps it.
	// A callee's frame is made where the operands end, so the frame may lie above its SenderSP.
	OperandSP bool
	// ExtendedSP is where such a frame keeps the machine's stack pointer, 0 if it does not.
	ExtendedSP int
}

// CallStubLayout says where the call stub keeps what it must restore, in words from its frame pointer.
type CallStubLayout struct {
	CallWrapper int     // JavaCallWrapper*
	Saved       []Saved // callee-saved registers of the C++ caller
}

// Saved is one register in a frame: its number and its slot in words.
type Saved struct {
	Reg  int
	Slot int
}
