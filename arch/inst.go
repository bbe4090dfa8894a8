package arch

// Inst is what one instruction tells of the code that it is part of: how long it is, and where that goes on.
type Inst struct {
	Len  uint32
	Flow Flow
	// Target is where a branch or jump leads, or a call, as an offset in the code, if HasTarget: if that is in the
	// code.
	Target    uint32
	HasTarget bool
	// Disp is added to a register for the address of what the instruction accesses, 0 if it accesses no memory.
	Disp int32
	// Swaps: it compares a word of memory, and exchanges it if it is the same.
	Swaps bool
}

// Flow says where code goes on behind an instruction.
type Flow uint8

const (
	FlowNext   Flow = iota
	FlowBranch      // or at its target
	FlowJump        // at its target, or nobody knows where
	FlowCall        // after a call
	FlowReturn
	FlowEnds // a trap
)
