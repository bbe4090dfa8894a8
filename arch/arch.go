// Package arch holds what differs between CPUs, and nothing else does.
//
// A CPU is a value, not a build constraint: recorded walks of either CPU replay on
// any machine. The files amd64.go and arm64.go are twins: the same names in the
// same order, so that a diff of the two shows what a newcomer must know.
package arch

import "debug/elf"

// MaxLinkerStub is how much code a CPU's LinkerStub wants, MinLinkerStub how little may be enough.
const MaxLinkerStub, MinLinkerStub = 24, 16

// MaxSenderSP is how much code tells a CPU's SenderSP.
const MaxSenderSP = 8

// MaxRegs bounds the register numbers of all CPUs that we know.
const MaxRegs = 34

// SavedSP is the number of a register that no CPU has: in an Exit it stands for a stack pointer
// that lies in memory (Exit.Saved).
const SavedSP = MaxRegs

// Regs are the general registers of a thread, indexed by DWARF number, so that
// CFI rules need no translation. The program counter sits at CPU.PC.
type Regs [MaxRegs]uint64

// CPU describes one processor architecture.
type CPU struct {
	Name    string      // as GOARCH spells it
	Machine elf.Machine // as ELF headers spell it

	// Indexes into Regs. PC is the DWARF return address column on amd64 and a
	// number of our own on arm64, where the return address column is LR.
	PC, SP, FP int
	// LR is the link register, or -1 where calls push the return address.
	LR int
	// RA is the DWARF column that holds the return address.
	RA int

	// DecodeRegs reads the kernel's NT_PRSTATUS register set. It returns the number
	// of the system call that the thread is in, or -1 for none or unknown.
	DecodeRegs func(prstatus []byte, r *Regs) (syscall int64, ok bool)

	// SyscallResult is the register in which the kernel returns.
	SyscallResult int

	// SyscallInst is the instruction at which a thread stands that slept in a system call until it was stopped:
	// the kernel has set it back, to call again. Then SyscallNumber is the register that says what it was in.
	// It is empty where DecodeRegs tells that, and SyscallResult what the kernel means to do.
	SyscallInst   []byte
	SyscallNumber int

	// PrstatusSize is the size of that register set.
	PrstatusSize int

	// Perf is what perf_event_open calls the registers.
	Perf *PerfLayout

	// Signed tells which bits of a code address may carry a signature in a process whose memory ends at highest, for one
	// whom the kernel does not tell: it does by ptrace only. It is nil where nothing is signed.
	Signed func(highest uint64) uint64

	// Calls are the system calls by their numbers that tell what a thread waits for.
	Calls map[int64]Call

	// Java names the registers that HotSpot's generated code gives a fixed meaning.
	Java JavaRegs

	// SenderSP finds Java.SenderSP in the code that ends with the call stub's call, MaxSenderSP bytes of it.
	// It is nil where all JDKs have the same.
	SenderSP func(code []byte) (reg int, ok bool)

	// AtEntry is how code returns that has done nothing since it was called.
	AtEntry Exit

	// Interp lists the layouts of an interpreter frame; vmstructs chooses one.
	Interp struct {
		JDK8, JDK9 InterpLayout // up to JDK 8, and since 9
	}

	// CalleeSaved is the set (by bit) of registers that a C function gives back.
	CalleeSaved uint64

	// CallStub is the frame that HotSpot's call stub makes between C++ and Java.
	CallStub CallStubLayout

	// NewTracer makes a reader of code ahead (see Exit). java are the registers of the JVM whose code
	// it is.
	NewTracer func(java JavaRegs) Tracer

	// AfterLeave reports whether the code shortly before offset off drops a frame: where
	// it may be worth asking a Tracer. It may say yes too often.
	AfterLeave func(code []byte, off uint64) bool

	// Enters returns how long the code at the start is that makes a standard frame (save
	// the frame pointer, set it to the stack pointer), 0 if there is no such code.
	Enters func(code []byte) int

	// EndsInCall reports whether code, MaxCall bytes of it, may end in a call: whether
	// what follows can be a return address.
	EndsInCall func(code []byte) bool
	MaxCall    int

	// Read reads the instruction at an offset in code. It returns false where there is none.
	Read func(code []byte, at uint32, in *Inst) bool
	// MinInst is the length of the shortest.
	MinInst uint32

	// Pops returns how much the code behind a call takes off the stack at once: what was pushed for that call alone.
	// It is nil where nothing is.
	Pops func(code []byte) uint64

	// Trampoline returns where code that does nothing but jump goes on, with these registers.
	Trampoline func(code []byte, r *Regs) (to uint64, ok bool)

	// ThreadSlot returns which word of the JavaThread code takes its stack pointer from, in its first
	// instructions.
	ThreadSlot func(code []byte) (offset uint64, ok bool)

	// LinkerStub reports whether code is what a linker makes for calls into another library: it goes on
	// there, and leaves all as it was at its entry. It is nil, and Detour, where such code has unwind rules.
	LinkerStub func(code []byte) bool

	// Detour reports whether code is an instruction that a linker has moved away, and a jump back, or that jump
	// alone. It returns how far from the start it goes back to: what unwind rules say of that place holds here, too.
	// It is nil where linkers do not do that.
	Detour func(code []byte) (by int64, ok bool)

	// Sigreturn is the code to which a signal's handler returns, SigRegs where the interrupted registers are
	// from the stack pointer there on, in the order and form of DecodeRegs. Sigreturn is empty where the unwind
	// rules of that code tell all of that.
	Sigreturn []byte
	SigRegs   int
}

// JavaRegs are registers with a fixed meaning in generated code (numbers into Regs).
type JavaRegs struct {
	Thread   int // JavaThread*
	BCP      int // interpreter: bytecode pointer
	Method   int // interpreter, at method entry: Method*
	SenderSP int // at method entry: sp of the caller before adapters moved it
	ThrownAt int // where an exception has left a method: the address that it would have returned to
}

// ReturnSlots are the words, from first to below end, in one of which a function holds its return address: below the caller's stack
// pointer, where the call has pushed it, or anywhere in its frame, where it has saved the link register.
func (c *CPU) ReturnSlots(sp, callerSP uint64) (first, end uint64) {
	if c.LR < 0 {
		return callerSP - 8, callerSP
	}
	return sp, callerSP
}

// InterpLayout gives the slots of an interpreter frame in words from the frame pointer.
type InterpLayout struct {
	SenderSP, LastSP, Method, Locals, BCP int
	// Operands: the operand stack has a stack pointer of its own, which LastSP keeps, somewhere above the
	// machine's. A callee's frame is made where the operands end, so it may lie above its SenderSP.
	Operands bool
	// ExtendedSP is where such a frame keeps the machine's stack pointer, 0 if it does not.
	ExtendedSP int
}

// CallStubLayout says where the call stub keeps what it must give back, in words
// from its frame pointer.
type CallStubLayout struct {
	CallWrapper int     // JavaCallWrapper*
	Saved       []Saved // callee-saved registers of the C++ caller
}

// Saved is one register in a frame: its number and its slot in words.
type Saved struct {
	Reg  int
	Slot int
}

// ByName returns the CPU that GOARCH calls name, or nil.
func ByName(name string) *CPU {
	for _, c := range []*CPU{AMD64, ARM64} {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// ByMachine returns the CPU of an ELF machine number, or nil.
func ByMachine(m elf.Machine) *CPU {
	for _, c := range []*CPU{AMD64, ARM64} {
		if c.Machine == m {
			return c
		}
	}
	return nil
}
