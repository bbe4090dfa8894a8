package arch

import "math/bits"

// Follower reads code ahead, for all CPUs. It follows one path through the code until the path returns, jumps away or
// cannot be followed. At each branch it keeps the other path for later. Each CPU's Steps apply instructions to a State.
//
// Code that HotSpot generates has a balanced stack on each path to a return. So any path to a return shows where the
// return address is. If a path cannot be followed (an indirect jump, a stack pointer of unknown origin), the Follower
// tries another.
type Follower struct {
	Code []byte
	// Start is the offset in Code at which the path began.
	Start uint32
	// Entry: the Follower stops where a standard frame is complete (TraceEntry).
	Entry bool

	steps Steps
	shift int // the length of every instruction is a multiple of 1<<shift
	base  uint64
	// Two words for each 64 units of code: a bit for each unit that a path has reached, then a bit for each unit that a
	// path without a stack pointer has reached.
	visited []uint64
	todo    []State
	state   State
	taken   int                  // steps taken on all paths
	frame   int32                // stop when sp is this many bytes below the caller's
	whole   func(pc uint64) bool // or when whole says that the frame is complete
	jump    Exit                 // the best exit by a jump
	found   bool                 // jump is set
}

// Steps is a CPU's part of a Follower.
type Steps interface {
	// Step executes the instruction at s.PC, and moves s.PC on.
	Step(s *State) Way
	// Exit returns the exit to which the last Step has led, in terms of the registers at the start.
	Exit(s *State, w Way) Exit
	// Framed returns the exit of code that has completed a frame of that size. steps is how many instructions the path
	// has. ok is false if no such frame is complete.
	Framed(s *State, size int32, steps int) (Exit, bool)
	// Sized returns the exit of code whose whole frame has that size.
	Sized(s *State, size int32) (Exit, bool)
	// IsBetter reports whether the exit e, by a jump, is preferred to than.
	IsBetter(e, than *Exit) bool
}

// Way is how a path goes on behind an instruction.
type Way uint8

const (
	WayGoesOn      Way = iota
	WayEnds            // the path cannot be followed, or leads nowhere
	WayReturns         // the code returns to the caller
	WayJumps           // the code jumps to a known address outside of itself
	WayJumpsAnyhow     // the code jumps to an unknown address, in a register or in memory
	WayBuildsFrame     // a standard frame is complete (Entry)
)

const (
	maxSteps = 20000 // instructions on all paths together
	maxWays  = 256
)

// NewFollower makes a Follower for a CPU. The lengths of its instructions are multiples of unit, a power of two.
func NewFollower(steps Steps, unit uint32) *Follower {
	return &Follower{steps: steps, shift: bits.TrailingZeros32(unit)}
}

// Trace is described at Tracer.
func (f *Follower) Trace(code []byte, base, pc uint64, frame int32) (Exit, error) {
	f.Entry, f.frame, f.whole = false, frame, nil
	return f.run(code, base, pc)
}

// TraceTo is described at Tracer.
func (f *Follower) TraceTo(code []byte, base, pc uint64, frame int32, whole func(pc uint64) bool) (Exit, error) {
	f.Entry, f.frame, f.whole = false, frame, whole
	return f.run(code, base, pc)
}

// TraceEntry is described at Tracer.
func (f *Follower) TraceEntry(code []byte, base, pc uint64) (Exit, error) {
	f.Entry, f.frame, f.whole = true, 0, nil
	return f.run(code, base, pc)
}

func (f *Follower) run(code []byte, base, pc uint64) (Exit, error) {
	if !f.begins(code, base, pc) {
		return Exit{}, ErrNoCode
	}
	for len(f.todo) > 0 && f.taken < maxSteps {
		last := len(f.todo) - 1
		f.state = f.todo[last]
		f.todo = f.todo[:last]
		if exit, ok := f.follow(&f.state); ok {
			return exit, nil
		}
	}
	if f.found {
		return f.jump, nil
	}
	return Exit{}, ErrNoExit
}

// begins prepares the Follower for a path that begins at pc. It returns false if no instruction of the code can begin
// there.
func (f *Follower) begins(code []byte, base, pc uint64) bool {
	if pc < base || pc-base >= uint64(len(code)) || (pc-base)&(1<<f.shift-1) != 0 || uint64(len(code)) >= 1<<31 {
		return false
	}
	f.Code, f.base, f.Start = code, base, uint32(pc-base)
	f.taken, f.found = 0, false
	words := 2 * (len(code)>>f.shift/64 + 1)
	if cap(f.visited) < words {
		f.visited = make([]uint64, words)
	}
	f.visited = f.visited[:words]
	clear(f.visited)
	f.state.Begin(f.Start)
	f.todo = append(f.todo[:0], f.state)
	return true
}

// isNew reports whether the offset lies in the code and no path has reached it before. It marks the offset as reached.
// lost: the path has lost its stack pointer.
func (f *Follower) isNew(at uint32, lost bool) bool {
	if int(at) >= len(f.Code) {
		return false
	}
	n := at >> f.shift
	word, bit := n/64*2, uint64(1)<<(n%64)
	if f.visited[word]&bit != 0 || lost && f.visited[word+1]&bit != 0 {
		return false
	}
	if lost {
		word++
	}
	f.visited[word] |= bit
	return true
}

// follow follows one path until it returns or ends.
func (f *Follower) follow(s *State) (Exit, bool) {
	for ; f.taken < maxSteps; f.taken++ {
		if f.whole != nil && f.whole(f.base+uint64(s.PC)) {
			return f.steps.Sized(s, f.frame)
		}
		if !f.isNew(s.PC, s.Lost) {
			return Exit{}, false
		}
		way := f.steps.Step(s)
		if way != WayGoesOn {
			return f.end(s, way)
		}
		if f.frame != 0 && f.whole == nil && !s.Calls {
			if exit, ok := f.steps.Framed(s, f.frame, f.taken); ok {
				return exit, true
			}
		}
	}
	return Exit{}, false
}

// end returns the exit of a path that ends. It keeps an exit by a jump for later, because another path may return.
func (f *Follower) end(s *State, way Way) (Exit, bool) {
	switch way {
	case WayBuildsFrame:
		return f.steps.Exit(s, way), true
	case WayReturns:
		if f.whole != nil {
			return Exit{}, false
		}
		exit := f.steps.Exit(s, way)
		return exit, exit.RA.Kind != Unknown && exit.SP.Kind == Value
	case WayJumps, WayJumpsAnyhow:
		if f.whole != nil {
			if way == WayJumpsAnyhow { // a jump through a table
				return f.steps.Sized(s, f.frame)
			}
			return Exit{}, false
		}
		exit := f.steps.Exit(s, way)
		if !f.found || f.steps.IsBetter(&exit, &f.jump) {
			f.jump, f.found = exit, true
		}
	}
	return Exit{}, false
}

// ToWhole reports whether the Follower stops where a frame is known to be complete (TraceTo).
func (f *Follower) ToWhole() bool { return f.whole != nil }

// Branch keeps the path from a branch's target for later.
func (f *Follower) Branch(s *State, to uint32) {
	if len(f.todo) < maxWays {
		f.todo = append(f.todo, *s)
		f.todo[len(f.todo)-1].PC = to
	}
}

// Inside returns the target of a branch: by bytes behind from. ok is false if the target is not in the code.
func (f *Follower) Inside(from uint32, by int64) (to uint32, ok bool) {
	target := int64(from) + by
	return uint32(target), target >= 0 && target < int64(len(f.Code))
}
