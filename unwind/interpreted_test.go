package unwind

import (
	"encoding/binary"
	"testing"

	"goprof/arch"
	"goprof/process"
)

// TestFrameEnds: on aarch64 an interpreted frame ends at the machine's stack pointer, which is lower than its operands.
// A frame that deoptimisation has made ends at its operands.
func TestFrameEnds(t *testing.T) {
	const words, fp = 32, 0x7000 + 20*8
	l := arch.InterpLayout{LastSP: -2, OperandSP: true, ExtendedSP: -5}
	for _, c := range []struct {
		name              string
		operands, machine uint64 // the slots
		called            uint64 // where the callee's frame begins
		ends              bool
	}{
		{"a call, 25", ^uint64(11), ^uint64(19), fp - 20*8, true},
		{"deoptimised, 25", ^uint64(11), ^uint64(19), fp - 12*8, true},
		{"a wrong frame, 25", ^uint64(3), ^uint64(19), fp - 12*8, false},
		{"a call, 21", fp - 12*8, fp - 20*8, fp - 20*8, true},
		{"deoptimised, 21", fp - 12*8, fp - 20*8, fp - 12*8, true},
		{"a wrong frame, 21", fp - 4*8, fp - 20*8, fp - 12*8, false},
		{"the slot is not set, 17", fp - 4*8, 0, fp - 12*8, true},
		{"nothing is stored", 0, 0, fp - 12*8, true},
		{"below the callee", fp - 18*8, 0, fp - 12*8, false},
	} {
		w := evaluator()
		stack := make([]byte, words*8)
		binary.LittleEndian.PutUint64(stack[fp-0x7000+l.LastSP*8:], c.operands)
		binary.LittleEndian.PutUint64(stack[fp-0x7000+l.ExtendedSP*8:], c.machine)
		w.snap = &process.Snapshot{SP: 0x7000, Stack: stack}
		w.cur.sp, w.cur.calledSP, w.cur.interpreted = 0x7000, c.called, true
		if w.calledAt(fp, l) != c.ends {
			t.Errorf("%s: %v", c.name, !c.ends)
		}
	}
}
