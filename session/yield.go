//go:build linux

package session

import (
	"errors"

	"goprof/profile"
)

// This file ends a recording by perf_event if stops would show more of the program, and if the recording may yield to
// them.

// ErrCut: with perf_event, many stacks end too early. It copies at most 64 KB of a stack, and it does not copy the
// thread's frame anchor, which a walk needs in code without unwind information (JIT compilers of native libraries).
var ErrCut = errors.New("session: perf_event cuts many stacks of this program")

const (
	// A recording yields after yieldAfter stacks if more than one in yieldPart of them is cut.
	yieldAfter = 100
	yieldPart  = 10
)

// yielding is the state of a recording that may yield.
type yielding struct {
	stacks, cut int64
	why         error
}

// yield ends the recording for this reason, if it may yield.
func (r *recording) yield(why error) {
	if r.opt.Yield && r.yielding.why == nil {
		r.yielding.why = why
		r.stop()
	}
}

// countCut counts n stacks, and how many of them would be whole with stops.
func (r *recording) countCut(end profile.Reason, n int64) {
	y := &r.yielding
	y.stacks += n
	if end == profile.NoUnwindInfo || end == profile.StackCut {
		y.cut += n
	}
	if y.stacks >= yieldAfter && y.cut*yieldPart > y.stacks {
		r.yield(ErrCut)
	}
}
