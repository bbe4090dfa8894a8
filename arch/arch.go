// Package arch has the code that all CPUs share, and the types that describe a CPU. Each CPU has its own folder, amd64
// or arm64. The two folders have files of the same names, so a diff of the folders shows the differences. Package cpus
// lists both CPUs. docs/contributing/new-cpu.md is the checklist for another CPU.
//
// A CPU is a value, not a build constraint: recorded walks of either CPU replay on any machine.
package arch

import "debug/elf"

// MaxLinkerStub is how many bytes of code a CPU's LinkerStub reads, MinLinkerStub the fewest that it accepts.
const MaxLinkerStub, MinLinkerStub = 24, 16

// MaxSenderSP is how many bytes of code a CPU's SenderSP reads.
const MaxSenderSP = 8

// MaxRegs bounds the register numbers of all CPUs here.
const MaxRegs = 34

// SavedSP is the number of a register that no CPU has. In an Exit it stands for a stack pointer that lies in memory
// (Exit.Saved).
const SavedSP = MaxRegs

// Regs are the general registers of a thread, indexed by DWARF number, so that CFI rules need no translation. The
// program counter sits at CPU.PC.
type Regs [MaxRegs]uint64

// CPU describes one processor architecture: facts, and functions that read its code.
type CPU struct {
	Facts
	Code
}

// NewCPU makes a CPU of its facts and its functions.
func NewCPU(facts Facts, code Code) *CPU { return &CPU{facts, code} }

// Facts are the constants of a CPU.
type Facts struct {
	Name    string      // the name in GOARCH
	Machine elf.Machine // the machine in ELF headers

	// Indexes into Regs. PC is the DWARF return address column on amd64. On arm64, where the return address column is LR,
	// it is a number that only goprof uses.
	PC, SP, FP int
	// ReturnsInRegister: a call leaves the return address in LR. On other CPUs a call pushes the return address, and LR
	// is -1.
	ReturnsInRegister bool
	// ConstantsApart: few constants fit into an instruction, so compilers load them into registers right before it.
	ConstantsApart bool
	// FreesHeapBase: if the heap begins at zero, the register for its beginning (see Inst.Narrow) may hold anything.
	FreesHeapBase bool
	LR            int
	// RA is the DWARF column that holds the return address.
	RA int

	// SyscallResult is the register with the result of a system call.
	SyscallResult int
	// FourthArg is the register with the fourth argument of a system call.
	FourthArg int
	// DearClock is a flag in /proc/cpuinfo. With it a guest must leave the virtual machine to set the CPU's timer, which
	// takes long. DearClock is empty if guests set the timer themselves.
	DearClock string

	// SyscallInst is the instruction of a system call. If a thread slept in a system call until it was stopped, its pc is
	// at that instruction: the kernel has moved the pc back, to make the call again. Then the register SyscallNumber says
	// which system call it is. SyscallInst is empty for a CPU on which DecodeRegs returns the system call, and
	// SyscallResult says what the kernel is going to do.
	SyscallInst   []byte
	SyscallNumber int

	// PrstatusSize is the size of the kernel's NT_PRSTATUS register set.
	PrstatusSize int

	// Locals describes how code finds thread-local variables.
	Locals LocalsLayout

	// Perf is the order in which perf_event_open gives the registers.
	Perf PerfLayout
	// Probe is where a BPF program at a probe finds the registers.
	Probe ProbeLayout

	// Signs: code addresses may carry a signature (pointer authentication).
	Signs bool

	// Calls has, by number, the system calls in which threads wait for something that goprof reports.
	Calls map[int64]Call

	// Java names the registers that HotSpot's generated code gives a fixed meaning.
	Java JavaRegs
	// SenderSPVaries: Java.SenderSP depends on the JDK, and Code.SenderSP finds it.
	SenderSPVaries bool

	// AtEntry is the Exit of code at its first instruction.
	AtEntry Exit

	// Interp lists the layouts of an interpreter frame. Package vmstructs chooses one.
	Interp InterpLayouts

	// CalleeSaved is the set (by bit) of registers that a C function leaves as they were.
	CalleeSaved uint64

	// CallStub is the frame that HotSpot's call stub makes between C++ and Java.
	CallStub CallStubLayout

	// MaxCall is the length of the longest call, MinInst that of the shortest instruction.
	MaxCall int
	MinInst uint32
	// ShortJump is the largest distance of a short jump or branch, from its beginning to its target, 0 if the CPU has no
	// short jumps.
	ShortJump uint32

	// Sigreturn is the code to which a signal handler returns. SigRegs is the distance from the stack pointer at
	// Sigreturn up to the interrupted registers, which have the form of DecodeRegs. Sigreturn is empty on a CPU where
	// unwind rules describe all of that.
	Sigreturn []byte
	SigRegs   int
	// SigInfo is the distance from the stack pointer at Sigreturn up to the signal's siginfo_t.
	SigInfo int
}

// SetsBack reports whether the kernel sets a thread back to its system call before a tracer sees it (SyscallInst).
func (f *Facts) SetsBack() bool { return len(f.SyscallInst) > 0 }

// Code has the functions that read a CPU's registers and code.
type Code interface {
	// DecodeRegs reads the kernel's NT_PRSTATUS register set. It returns the number of the system call that the thread is
	// in, or -1 for none or unknown.
	DecodeRegs(prstatus []byte, r *Regs) (syscall int64, ok bool)

	// Signed returns the bits of a code address that may carry a signature, in a process whose memory ends at highest.
	// It is for callers without ptrace: the kernel reports these bits only by ptrace. Without Signs the result is 0.
	Signed(highest uint64) uint64

	// SenderSP finds the register Java.SenderSP in code: the last MaxSenderSP bytes of the call stub's code up to the
	// end of its call.
	SenderSP(code []byte) (reg int, ok bool)

	// NewTracer makes a reader of code ahead (see Exit). java are the registers of the JVM whose code it is.
	NewTracer(java JavaRegs) Tracer

	// AfterLeave reports whether the code shortly before offset off drops a frame. It may be wrong: the caller then asks a
	// Tracer.
	AfterLeave(code []byte, off uint64) bool

	// Enters returns the length of the code at the start that makes a standard frame (saves the frame pointer, and sets it
	// to the stack pointer), 0 if there is none.
	Enters(code []byte) int

	// EndsInCall reports whether code, which has MaxCall bytes, may end in a call. Only then can the address behind code
	// be a return address.
	EndsInCall(code []byte) bool

	// CallTarget returns the target of the direct call at the end of code, which has MaxCall bytes. ret is the address
	// behind the call. ok is false if code ends in no direct call.
	CallTarget(code []byte, ret uint64) (to uint64, ok bool)

	// Read reads the instruction at an offset in code. It returns false if there is none.
	Read(code []byte, at uint32, in *Inst) bool

	// Operands returns what the instruction at an offset reads and writes, false if not all of that is known.
	Operands(code []byte, at uint32) (Operands, bool)

	// Condition returns the condition of the branch at the offset branch. compare is the offset of the comparison right
	// before the branch, or that of the branch itself if the branch compares. It returns false for anything but a
	// comparison of two whole numbers of 32 or 64 bits.
	Condition(code []byte, compare, branch uint32) (Condition, bool)

	// LongJumps calls each for all bytes that look like a jump or a branch of more than ShortJump bytes within code,
	// perhaps also for shorter ones. The bytes may belong to another instruction, because LongJumps does not decode the
	// code in order.
	LongJumps(code []byte, each func(at, target uint32))

	// Intrinsics finds the code that C2 makes for calls of intrinsic methods. It calls each for every piece, in order,
	// until each returns false. name is HotSpot's function that makes the piece. A match may be wrong and begin within an
	// instruction.
	Intrinsics(code []byte, each func(name string, begin, end uint32) bool)

	// Pops returns how many bytes the first instruction behind a call takes off the stack that were pushed for that
	// call alone.
	Pops(code []byte) uint64

	// Trampoline returns the target of code that only jumps, with the registers r. ok is false for other code.
	Trampoline(code []byte, r *Regs) (to uint64, ok bool)

	// ThreadSlot returns the offset of the word of the JavaThread from which the first instructions of code load the stack
	// pointer. ok is false for other code.
	ThreadSlot(code []byte) (offset uint64, ok bool)

	// LinkerStub reports whether a linker has made the code for calls into another library. Such code jumps there, and
	// changes neither the stack nor the registers. The walker calls LinkerStub and Detour where there are no unwind rules.
	LinkerStub(code []byte) bool

	// Detour reports whether code is an instruction that a linker has moved, with the jump back behind it, or that jump
	// alone. by is the distance from the start of code to the jump's target. The unwind rules of the target hold here,
	// too.
	Detour(code []byte) (by int64, ok bool)
}

// JavaRegs are registers with a fixed meaning in generated code (numbers into Regs).
type JavaRegs struct {
	BCP      int // interpreter: bytecode pointer
	Method   int // interpreter, at method entry: Method*
	SenderSP int // at method entry: the caller's sp before adapters moved it
	ThrownAt int // when an exception leaves a method: the address to which the method would have returned
}

// ReturnSlots returns the range of words, from first to below end, one of which holds a function's return address. A
// call that pushes the address puts it below the caller's stack pointer. If a call uses the link register, the address
// may be anywhere in the function's frame.
func (c *CPU) ReturnSlots(sp, callerSP uint64) (first, end uint64) {
	if c.ReturnsInRegister {
		return sp, callerSP
	}
	return callerSP - 8, callerSP
}

// InterpLayouts are the layouts of all JDKs.
type InterpLayouts struct {
	JDK8, JDK9 InterpLayout // the layout up to JDK 8, and since 9
}

// InterpLayout gives the slots of an interpreter frame in words from the frame pointer.
type InterpLayout struct {
	SenderSP, LastSP, Method, Locals, BCP int
	// OperandSP: the operand stack has a stack pointer of its own, above the machine's. LastSP is the slot of that
	// pointer. A callee's frame begins where the operands end, so the frame may lie above its SenderSP.
	OperandSP bool
	// ExtendedSP is the slot of the machine's stack pointer in a frame with OperandSP, 0 if there is none.
	ExtendedSP int
}

// CallStubLayout gives the slots in which the call stub saves registers, in words from its frame pointer.
type CallStubLayout struct {
	CallWrapper int     // JavaCallWrapper*
	Saved       []Saved // callee-saved registers of the C++ caller
}

// Saved is one register in a frame: its number and its slot in words.
type Saved struct {
	Reg  int
	Slot int
}
