package arch

// Inst is one decoded instruction: its length, what it does, and where the code goes on.
type Inst struct {
	Len  uint32
	Flow Flow
	// Target is the offset in the code to which a branch, jump or call leads. HasTarget is false if the target is not in
	// the code.
	Target    uint32
	HasTarget bool
	// Disp is the displacement of the memory operand, 0 if there is none. A nop has a Disp that is not 0 if it holds data,
	// as part of the mark behind a call.
	Disp int32
	// Base is the register of the memory operand.
	Base Base
	// Loads: the instruction only copies memory to a register. Indexed: an index register is added to the address.
	Loads, Indexed bool
	// Narrow: the index register may hold a compressed reference to the accessed object. The base register then holds
	// the beginning of the heap.
	Narrow bool
	// Stores: the instruction copies a register or a constant to memory, and reads no memory.
	Stores bool
	// Swaps: the instruction is a compare-and-swap.
	Swaps bool
	Kind  Kind
	// Byte: the memory operand is one byte.
	Byte bool
	// Shift is by how many bits the instruction shifts a 64-bit word right, unsigned.
	Shift uint8
	// Widens: the instruction shifts a 64-bit word left by three, as code does that makes an address of a compressed
	// reference.
	Widens bool
	// Arg is the constant that the instruction puts into the register of a call's first argument, 0 if it does not.
	Arg int32
}

// Kind is what an instruction does, if that matters to the analysis of compiled code.
type Kind uint8

const (
	KindOther   Kind = iota
	KindCopy         // copies a word between registers, between those and the stack, or within the stack
	KindCompare      // only compares: the branch behind it uses the result
	KindPrefetch
	KindLong  // puts a constant of 64 bits into a register
	KindConst // puts another constant, or the address of a place on the stack, into a register or onto the stack
	KindNop   // does nothing that the program can see
	KindLeave // takes down a frame, or a part of it: it moves the stack pointer up
	// KindAtomic reads and writes memory atomically. It takes some twenty cycles or more, and a CPU takes an interrupt
	// before or behind it, never within.
	KindAtomic
)

// Base is what the base register of a memory operand holds.
type Base uint8

const (
	BaseNone   Base = iota // the instruction accesses no memory, or an address without a base register
	BaseOther              // any other register
	BaseStack              // the stack pointer
	BaseThread             // the register in which HotSpot keeps the thread
)

// Flow is where code goes on behind an instruction.
type Flow uint8

const (
	FlowNext   Flow = iota
	FlowBranch      // behind the instruction, or at its target
	FlowJump        // at the target, which may not be known
	FlowCall        // behind the instruction, after a call
	FlowReturn
	FlowEnds // a trap
)

// Operands are the general registers that an instruction reads and writes, by bit, with the CPU's own numbers.
type Operands struct {
	Reads, Writes uint32
	// Computes: the instruction computes the register that it writes from registers and constants alone. Conversions to
	// another width count.
	Computes bool
	// Constant is what an instruction of KindLong puts into the register that it writes.
	Constant uint64
}

// Condition is the condition of a branch: a relation between two numbers.
type Condition struct {
	Is Relation
	// Wide: the numbers have 64 bits.
	Wide bool
	// Constant: the second number is Value, not a register.
	Constant bool
	Value    int64
	// InMemory: one of the numbers is read from memory.
	InMemory bool
}

// Relation is a comparison of two signed numbers.
type Relation uint8

const (
	Equal Relation = iota
	NotEqual
	Less
	NotLess
	Greater
	NotGreater
)

// Not returns the opposite relation.
func (r Relation) Not() Relation { return r ^ 1 }

// Swapped returns the relation of the second number to the first.
func (r Relation) Swapped() Relation {
	switch r {
	case Less, NotLess:
		return r + (Greater - Less)
	case Greater, NotGreater:
		return r - (Greater - Less)
	}
	return r
}
