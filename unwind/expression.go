package unwind

import (
	"encoding/binary"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"goprof/arch"
	"goprof/target"
)

// evaluate computes a DWARF expression of a CFI rule with delve's evaluator. Few
// frames have one: the PLT and the signal trampoline. The stack is read from the copy.
// initial, if given, is pushed first, as register rules want it (the CFA).
func (w *Walker) evaluate(c *cursor, expr []byte, initial *uint64) (result uint64, ok bool) {
	defer func() {
		if recover() != nil { // the expression comes from the target's files
			result, ok = 0, false
		}
	}()
	regs := make([]*op.DwarfRegister, arch.MaxRegs)
	for i := range regs {
		if c.known&(1<<i) != 0 {
			regs[i] = op.DwarfRegisterFromUint64(c.regs[i])
		}
	}
	cpu := w.cpu
	dr := op.NewDwarfRegisters(0, regs, binary.LittleEndian, uint64(cpu.PC), uint64(cpu.SP), uint64(cpu.FP), 0)
	program := expr
	if initial != nil {
		program = make([]byte, 9, 9+len(expr))
		program[0] = byte(op.DW_OP_const8u)
		binary.LittleEndian.PutUint64(program[1:], *initial)
		program = append(program, expr...)
	}
	v, pieces, err := op.ExecuteStackProgram(*dr, program, 8, func(p []byte, addr uint64) (int, error) {
		off := addr - w.snap.SP
		if off >= uint64(len(w.snap.Stack)) || uint64(len(w.snap.Stack))-off < uint64(len(p)) {
			return 0, target.ErrFault
		}
		return copy(p, w.snap.Stack[off:]), nil
	})
	if err != nil || pieces != nil {
		return 0, false
	}
	return uint64(v), true
}
