package arch

// What the readers of code ahead of all CPUs share.
const (
	MaxSteps   = 20000 // instructions on all ways together
	MaxWays    = 256
	MaxSlots   = 24
	FirstToken = 64   // pseudo registers: stack pointers of unknown origin
	NoReg      = 0xff // no address has it
)

// Way is how the way of a Tracer goes on behind an instruction.
type Way uint8

const (
	WayGoesOn Way = iota
	WayEnds
	WayReturns
	WayJumps
	WayBuildsFrame
)

// Told is l for those outside, who know no tokens.
func Told(l Loc) Loc {
	if l.Reg >= FirstToken {
		return Loc{}
	}
	return l
}
