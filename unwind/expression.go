package unwind

import (
	"encoding/binary"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"goprof/arch"
	"goprof/process"
)

// pushed is the number of a register that no CPU has. It holds the initial value of an expression.
const pushed = arch.MaxRegs

// maxEvaluated bounds the bytes of all expressions of one walk. An expression can loop (for up to ten steps for each of
// its bytes), and each frame may have an expression for each register.
const maxEvaluated = 64 << 10

// evaluate computes a DWARF expression of a CFI rule (of the PLT and the signal trampoline) with delve's evaluator. It
// reads the stack from the copy. initial, if not nil, is pushed first, because register rules expect the CFA there.
func (w *Walker) evaluate(c *cursor, expr []byte, initial *uint64) (result uint64, ok bool) {
	if w.evaluated += len(expr); w.evaluated > maxEvaluated || hasBlock(expr) {
		return 0, false
	}
	defer func() {
		if recover() != nil { // the expression comes from the target's files
			result, ok = 0, false
		}
	}()
	regs := make([]*op.DwarfRegister, pushed+1)
	for i := range arch.MaxRegs {
		if c.known&(1<<i) != 0 {
			regs[i] = op.DwarfRegisterFromUint64(c.regs[i])
		}
	}
	cpu := w.cpu
	dr := op.NewDwarfRegisters(0, regs, binary.LittleEndian, uint64(cpu.PC), uint64(cpu.SP), uint64(cpu.FP), 0)
	program := expr
	if initial != nil {
		regs[pushed] = op.DwarfRegisterFromUint64(*initial)
		program = append([]byte{byte(op.DW_OP_bregx), pushed, 0}, expr...)
	}
	v, pieces, err := op.ExecuteStackProgram(*dr, program, 8, func(p []byte, addr uint64) (int, error) {
		off := addr - w.snap.SP
		if off >= uint64(len(w.snap.Stack)) || uint64(len(w.snap.Stack))-off < uint64(len(p)) {
			return 0, process.ErrFault
		}
		return copy(p, w.snap.Stack[off:]), nil
	})
	if err != nil || pieces != nil {
		return 0, false
	}
	return uint64(v), true
}

// hasBlock reports whether a program may have DW_OP_implicit_value with a block longer than 127 bytes. The evaluator
// allocates the block before it checks the length, and goprof cannot recover from an allocation that is too large. A
// program may jump to any byte, so hasBlock checks each byte. Unwind rules do not use this instruction (DWARF 5,
// section 6.4.2), and no number looks like it in 6,159 expressions of 537 libraries.
func hasBlock(program []byte) bool {
	for i := 1; i < len(program); i++ {
		if op.Opcode(program[i-1]) == op.DW_OP_implicit_value && program[i] >= 0x80 {
			return true
		}
	}
	return false
}
