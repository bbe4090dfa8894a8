package arch

// Inst is what one instruction says of the code that it is part of: how long it is, and where that goes on.
type Inst struct {
	Len  uint32
	Flow Flow
	// Target is where a branch or jump leads, or a call, as an offset in the code, if HasTarget: if that is in the
	// code.
	Target    uint32
	HasTarget bool
	// Disp is added to a register for the address of what the instruction accesses, 0 if it accesses no memory. A nop
	// has a Disp that is not 0 if it holds data, as part of the mark behind a call.
	Disp int32
	// Base is where that address begins.
	Base Base
	// Loads: it copies memory at that address to a register, and does nothing else. Indexed: another register is added
	// to the address.
	Loads, Indexed bool
	// Narrow: that other register may hold a compressed reference to the object that is accessed. Then Base is the begin
	// of the heap.
	Narrow bool
	// Stores: it copies a register or a constant to memory. It reads no memory.
	Stores bool
	// Swaps: it compares a word of memory, and exchanges it if it is the same.
	Swaps bool
	Kind  Kind
	// Byte: the memory that it accesses is one byte.
	Byte bool
	// Shift is by how many bits a word of 64 bits is shifted right, without its sign.
	Shift uint8
	// Widens: it shifts a word of 64 bits left by three: so a compressed reference becomes an address.
	Widens bool
	// Arg is the constant that the instruction puts into the register of a call's first argument, 0 if it does not.
	Arg int32
}

// Kind is what an instruction does, of what tells something about compiled code.
type Kind uint8

const (
	KindOther   Kind = iota
	KindCopy         // copies a word between registers, between those and the stack, or within the stack
	KindCompare      // compares, and does nothing else: the branch behind it asks for the result
	KindPrefetch
	KindLong  // puts a constant of 64 bits into a register
	KindConst // puts another constant, or the address of a place on the stack, into a register or onto the stack
	KindNop   // does nothing that the program sees
	KindLeave // takes down a frame, or a part of it: it moves the stack pointer up
	// KindAtomic reads and writes memory in one step that no other CPU sees half done. It takes some twenty cycles or
	// more, and a CPU takes an interrupt before it or behind it, never within.
	KindAtomic
)

// Base says where the address of an access of memory begins.
type Base uint8

const (
	BaseNone   Base = iota // it accesses no memory, or at an address of its own
	BaseOther              // at a register
	BaseStack              // at the stack pointer
	BaseThread             // at the register in which HotSpot keeps the thread
)

// Flow says where code goes on behind an instruction.
type Flow uint8

const (
	FlowNext   Flow = iota
	FlowBranch      // or at its target
	FlowJump        // at its target, or it is not known where
	FlowCall        // after a call
	FlowReturn
	FlowEnds // a trap
)

// Operands are the general registers that an instruction reads and writes, by bit, with the CPU's own numbers.
type Operands struct {
	Reads, Writes uint32
	// Computes: it does arithmetic with registers and constants alone, or makes a register's value wider or narrower, and
	// puts the result into the register that it writes.
	Computes bool
	// Constant is what an instruction of KindLong puts into that register.
	Constant uint64
}

// Condition is what a branch asks for: it goes to its target if the first of two numbers is so to the second.
type Condition struct {
	Is Relation
	// Wide: they have 64 bits.
	Wide bool
	// Constant: the second is Value, and no register.
	Constant bool
	Value    int64
	// InMemory: one of them is read from memory.
	InMemory bool
}

// Relation is how one number is to another, both with their signs.
type Relation uint8

const (
	Equal Relation = iota
	NotEqual
	Less
	NotLess
	Greater
	NotGreater
)

// Not is what holds where a relation does not.
func (r Relation) Not() Relation { return r ^ 1 }

// Swapped returns how the second number is to the first.
func (r Relation) Swapped() Relation {
	switch r {
	case Less, NotLess:
		return r + (Greater - Less)
	case Greater, NotGreater:
		return r - (Greater - Less)
	}
	return r
}
