package leaf

import "goprof/vmstructs"

// weights are estimates of how much machine code a bytecode becomes, in 64ths of an instruction. They do not include
// the code that a bytecode calls: that code is a leg of its own, or not known.
type weights struct {
	arrayLoad, arrayStore, cast, allocation, monitor, field, jump, branch, static, length, arithmetic, compare, invoke,
	returns, other int
	// Only a part of the work of some methods counts, in sixteenths. entering is for methods that the program enters at
	// the end of the route. elsewhere is for inlined methods on the route that have records elsewhere: most of their
	// work is between these records.
	entering, elsewhere int
}

// With weightsC2 most leaves were right in the programs that rules are tuned on. The weights were found by halving and
// doubling them one after the other (docs/evidence/leaf.md).
var (
	weightsC1 = weights{arrayLoad: 192, arrayStore: 192, cast: 192, allocation: 1280, monitor: 1280, field: 128,
		jump: 128, branch: 128, static: 96, length: 96, arithmetic: 64, compare: 64, invoke: 64, returns: 16, other: 16,
		entering: 16, elsewhere: 4}
	weightsC2 = weights{arrayLoad: 768, arrayStore: 192, cast: 192, allocation: 1280, monitor: 5120, field: 32,
		jump: 32, branch: 128, static: 96, length: 96, arithmetic: 256, compare: 16, invoke: 8, returns: 4, other: 16,
		entering: 8, elsewhere: 1}
)

func weightsOf(level uint8) *weights {
	if level == levelC2 {
		return &weightsC2
	}
	return &weightsC1
}

const (
	// workCount is the work of a method's entry in tier 3: the entry counts calls for C2.
	workCount = 640
	// workUnknown is the work of code that throws, or that loops otherwise than its bytecodes.
	workUnknown = 64
	// workUnread is the work of a method whose bytecodes cannot be read.
	workUnread = 16
	// maxRound bounds the work of a path once around a loop, for each instruction of the code around the loop: twice
	// the work of an instruction.
	maxRound = 128
)

func (w *weights) weigh(b *vmstructs.Bytecode) int {
	switch op := b.Op; {
	case op >= vmstructs.OpIaload && op <= vmstructs.OpSaload:
		return w.arrayLoad // the check of bounds included
	case op >= vmstructs.OpIastore && op <= vmstructs.OpSastore:
		return w.arrayStore
	case op == vmstructs.OpCheckcast, op == vmstructs.OpInstanceof:
		return w.cast
	case op >= vmstructs.OpNew && op <= vmstructs.OpAnewarray:
		return w.allocation
	case op == vmstructs.OpMonitorenter, op == vmstructs.OpMonitorexit:
		return w.monitor
	case op == vmstructs.OpGetfield, op == vmstructs.OpPutfield:
		return w.field
	case op == vmstructs.OpGoto:
		return w.jump
	case b.Target >= 0:
		return w.branch
	case op == vmstructs.OpGetstatic, op == vmstructs.OpPutstatic:
		return w.static
	case op == vmstructs.OpArraylength:
		return w.length
	case op >= vmstructs.OpIadd && op < vmstructs.OpI2l:
		return w.arithmetic
	case op >= vmstructs.OpI2l && op <= vmstructs.OpDcmpg:
		return w.compare
	case isInvoke(op):
		return w.invoke
	case b.Returns():
		return w.returns
	}
	return w.other // loads and stores of locals, and constants: registers
}
