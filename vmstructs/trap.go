package vmstructs

// Compiled code that cannot continue calls the uncommon trap. The only argument is a request, a negative number. Its
// complement has the action in its lower bits and the reason above them (runtime/deoptimization.hpp,
// make_trap_request).

type TrapReason uint8

const (
	NoTrap       TrapReason = iota // the number is not a request
	TrapNull                       // a reference is null, or is not
	TrapRange                      // an index is out of bounds
	TrapClass                      // an object's class is not the one that profiles have predicted
	TrapDivision                   // by zero
	TrapBranch                     // a branch is taken that was never taken before
	TrapOther
	// TrapBeforeLoop is a check before a loop, for all iterations at once. It has the record of the loop's beginning, not
	// of the bytecode that needs the check.
	TrapBeforeLoop
)

// TrapReason returns the reason of a request.
func (vm *VM) TrapReason(request int32) TrapReason {
	l := &vm.l.trap
	if request >= 0 {
		return NoTrap
	}
	reason := ^request >> l.shift & (1<<l.bits - 1)
	for r, set := range l.reasons {
		if set&(1<<reason) != 0 {
			return TrapReason(r)
		}
	}
	return TrapOther
}

// trapLayout has the form of a request, and the numbers of reasons by bit.
type trapLayout struct {
	shift, bits uint8
	reasons     [TrapBeforeLoop + 1]uint64
}

// trapReasons are the names of reasons, of all releases.
var trapReasons = [TrapBeforeLoop + 1][]string{
	TrapNull:     {"null_check", "null_assert", "speculate_null_check", "speculate_null_assert"},
	TrapRange:    {"range_check"},
	TrapClass:    {"class_check", "array_check", "bimorphic", "speculate_class_check"},
	TrapDivision: {"div0_check"},
	TrapBranch:   {"unstable_if", "unstable_fused_if"},
	TrapBeforeLoop: {"predicate", "profile_predicate", "loop_limit_check", "short_running_long_loop",
		"auto_vectorization_check"},
}

func (r *resolver) trap() trapLayout {
	// The shift is the same in all releases. 8 does not export it, nor the five bits for the reason.
	var l trapLayout
	l.shift = uint8(r.int("Deoptimization::_reason_shift", 3)) & 31
	l.bits = uint8(r.int("Deoptimization::_reason_bits", 5)) & 7
	for reason, names := range trapReasons {
		for _, name := range names {
			if n := r.int("Deoptimization::Reason_"+name, -1); n >= 0 && n < 64 {
				l.reasons[reason] |= 1 << n
			}
		}
	}
	return l
}
