package arch

// Exit says how the code at some pc returns to its caller, told in terms of the
// registers at that pc. Trace finds it by following the code ahead to its return,
// so it holds at any instruction: before a frame is built, half way, after it is gone.
type Exit struct {
	RA Loc // where the return address is now
	SP Loc // what the stack pointer will be in the caller (never AtMem)
	FP Loc // where the caller's frame pointer is now
	// Jump: the code ends in a jump out of the blob rather than a return. SenderSP
	// then says what CPU.Java.SenderSP will hold at that point.
	Jump     bool
	SenderSP Loc
	Steps    int // instructions looked at
}

// LocKind says how to evaluate a Loc.
type LocKind uint8

const (
	Unknown LocKind = iota
	Value           // register Reg + Off
	AtMem           // the word at register Reg + Off
)

// Loc is a value found relative to the registers at the pc that was traced.
type Loc struct {
	Kind LocKind
	Reg  uint8
	Off  int32
}
