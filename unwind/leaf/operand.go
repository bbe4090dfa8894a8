package leaf

import (
	"slices"

	"goprof/arch"
	"goprof/vmstructs"
)

// Bytecodes pass values to each other on the operand stack, and instructions do so in registers. The first instruction
// that reads the register of a load uses the loaded value.

// maxHanded bounds the instructions from a load to the one that uses its value.
const maxHanded = 6

// taker returns the first instruction behind a load that reads the load's register, notInCode if that is not known.
func (m *codeMap) taker(n int32) int32 {
	load, ok := m.operands(n)
	if !ok || load.Writes == 0 {
		return notInCode
	}
	for range maxHanded {
		if m.list[n].flow != arch.FlowNext {
			break
		}
		if n = m.next(n); n == notInCode {
			break
		}
		o, ok := m.operands(n)
		switch {
		case !ok:
			return notInCode
		case o.Reads&load.Writes != 0:
			return n
		case o.Writes&load.Writes != 0:
			return notInCode
		}
	}
	return notInCode
}

// operands returns the operands of an instruction. Few callers need operands, so they are not kept.
func (m *codeMap) operands(n int32) (arch.Operands, bool) {
	return m.cpu.Operands(m.code, m.list[n].at)
}

// stackOf returns how many values a bytecode takes off the operand stack, and how many it puts there. ok is false if
// that depends on more than the opcode, or for an opcode that moves values on the stack or jumps.
func stackOf(op uint8) (takes, puts int, ok bool) {
	i := slices.IndexFunc(stackEffects[:], func(e stackEffect) bool { return op <= e.last })
	if i < 0 || stackEffects[i].takes < 0 {
		return 0, 0, false
	}
	return int(stackEffects[i].takes), int(stackEffects[i].puts), true
}

// stackEffect is the effect of the opcodes up to last that are not in an entry before. takes is -1 if stackOf returns
// false.
type stackEffect struct {
	last        uint8
	takes, puts int8
}

// stackEffects are from the Java Virtual Machine Specification, chapter 6.5. A long counts as one value here.
var stackEffects = [...]stackEffect{
	{0x00, 0, 0},                  // nop
	{0x2d, 0, 1},                  // constants and locals
	{vmstructs.OpSaload, 2, 1},    // elements of arrays
	{0x4e, 1, 0},                  // stores to locals
	{vmstructs.OpSastore, 3, 0},   // stores to elements
	{0x5f, -1, 0},                 // pop, dup, swap
	{0x73, 2, 1},                  // arithmetic
	{0x77, 1, 1},                  // negations
	{0x83, 2, 1},                  // shifts, and, or, xor
	{0x84, 0, 0},                  // iinc
	{0x93, 1, 1},                  // conversions
	{vmstructs.OpDcmpg, 2, 1},     //
	{0x9e, 1, 0},                  // if with zero
	{0xa6, 2, 0},                  // if with two values
	{0xa9, -1, 0},                 // goto, jsr, ret
	{0xb0, 1, 0},                  // switches, returns of a value
	{vmstructs.OpReturn, -1, 0},   //
	{vmstructs.OpGetstatic, 0, 1}, //
	{vmstructs.OpPutstatic, 1, 0}, //
	{vmstructs.OpGetfield, 1, 1},  //
	{vmstructs.OpPutfield, 2, 0},  //
	{vmstructs.OpInvokeLast, -1, 0},
	{vmstructs.OpNew, 0, 1},
	{vmstructs.OpArraylength, 1, 1}, // newarray, anewarray, arraylength
	{vmstructs.OpAthrow, -1, 0},
	{vmstructs.OpInstanceof, 1, 1}, // checkcast, instanceof
	{vmstructs.OpMonitorexit, 1, 0},
	{0xc5, -1, 0}, // wide, multianewarray
	{0xc7, 1, 0},  // if with null
}
