package vmstructs

import (
	"encoding/binary"
	"fmt"
	"sort"
)

// Bytecode is one instruction of a method, as in its class file. The interpreter replaces some instructions with its
// own, of the same length, or several with one (interpreter/bytecodes.hpp, rewriter.cpp).
type Bytecode struct {
	BCI    int32
	Op     uint8
	Handle bool   // an invoke of a method of MethodHandle or VarHandle that takes any arguments: see opInvokeHandle
	Index  uint16 // of an invoke or a field: the index of its entry in the constant pool's cache; or see Constant
	Target int32  // the target of a branch or jump; -1 for others
}

// smallConstants are the numbers of iconst_m1 to lconst_1.
var smallConstants = [...]int16{-1, 0, 1, 2, 3, 4, 5, 0, 1}

// Constant returns the small integer that a bytecode pushes. ok is false if the bytecode does not push one.
func (b *Bytecode) Constant() (value int64, ok bool) {
	if b.Op < opIconstM1 || b.Op > opLconst1 && b.Op != opBipush && b.Op != opSipush {
		return 0, false
	}
	return int64(int16(b.Index)), true
}

// Ends reports whether execution never continues with the next bytecode. A switch may continue there, because its first
// case follows.
func (b *Bytecode) Ends() bool {
	return b.Op == OpGoto || b.Op == opGotoW || b.Returns() || b.Op == OpAthrow
}

func (b *Bytecode) Returns() bool { return b.Op >= OpIreturn && b.Op <= OpReturn }

// Branches reports whether execution may continue with one of several bytecodes.
func (b *Bytecode) Branches() bool {
	return b.Target >= 0 && !b.Ends() || b.Op == opTableswitch || b.Op == opLookup
}

// Allocates reports whether a bytecode makes an object or an array.
func (b *Bytecode) Allocates() bool {
	return b.Op >= OpNew && b.Op <= OpAnewarray || b.Op == opMultianewarray
}

// Bytecodes that goprof distinguishes. Of a family of bytecodes, the first and the last are listed.
const (
	opIconstM1    = 0x02
	opLconst1     = 0x0a
	opBipush      = 0x10
	opSipush      = 0x11
	OpLdc         = 0x12
	OpLdc2W       = 0x14
	OpAload0      = 0x2a
	OpIaload      = 0x2e
	OpAaload      = 0x32
	OpSaload      = 0x35
	OpIastore     = 0x4f
	OpAastore     = 0x53
	OpSastore     = 0x56
	OpIadd        = 0x60
	OpIdiv        = 0x6c
	OpLrem        = 0x71
	OpFrem        = 0x72
	OpDrem        = 0x73
	OpI2l         = 0x85 // the first conversion
	OpLcmp        = 0x94
	OpDcmpg       = 0x98
	opIinc        = 0x84
	OpIfeq        = 0x99 // and five more with zero
	OpIfle        = 0x9e
	OpIficmpeq    = 0x9f // and five more with two numbers
	OpIficmple    = 0xa4
	OpIfacmpeq    = 0xa5
	OpIfacmpne    = 0xa6
	OpGoto        = 0xa7
	opJsr         = 0xa8
	opTableswitch = 0xaa
	opLookup      = 0xab
	OpIreturn     = 0xac
	OpReturn      = 0xb1
	OpGetstatic   = 0xb2
	OpPutstatic   = 0xb3
	OpGetfield    = 0xb4
	OpPutfield    = 0xb5
	OpInvoke      = 0xb6
	OpInvokeLast  = 0xba

	OpInvokeSpecial, OpInvokeStatic, OpInvokeInterface = 0xb7, 0xb8, 0xb9

	OpNew            = 0xbb
	OpAnewarray      = 0xbd
	OpArraylength    = 0xbe
	OpAthrow         = 0xbf
	OpCheckcast      = 0xc0
	OpInstanceof     = 0xc1
	OpMonitorenter   = 0xc2
	OpMonitorexit    = 0xc3
	opWide           = 0xc4
	opMultianewarray = 0xc5
	OpIfnull         = 0xc6
	OpIfnonnull      = 0xc7
	opGotoW          = 0xc8
	opBreakpoint     = 0xca
	opFirstOfVM      = 0xcb
)

// maxBytecodes bounds a method: class files allow 65,535 bytes.
const maxBytecodes = 1 << 16

// bytecodeLengths has a digit for the length of each opcode from 0 to 201, sixteen in a line. 0 stands for instructions
// whose length depends on their operands.
const bytecodeLengths = "1111111111111111" +
	"2323322222111111" +
	"1111111111111111" +
	"1111112222211111" +
	"1111111111111111" +
	"1111111111111111" +
	"1111111111111111" +
	"1111111111111111" +
	"1111311111111111" +
	"1111111113333333" +
	"3333333332001111" +
	"1133333335532311" + // 0xb0: areturn, return, fields, invokes, new ...
	"3311043355"

// vmBytecodes maps HotSpot's own opcodes, from 203 on, to bytecodes (interpreter/bytecodes.hpp). JDK 8 has all but the
// one for stores of booleans. An opcode for several bytecodes maps to the first of them, because the others still
// follow it in the method.
var vmBytecodes = [...]uint8{
	// fast_agetfield to fast_sgetfield
	OpGetfield, OpGetfield, OpGetfield, OpGetfield, OpGetfield, OpGetfield, OpGetfield, OpGetfield,
	// fast_aputfield to fast_sputfield
	OpPutfield, OpPutfield, OpPutfield, OpPutfield, OpPutfield, OpPutfield, OpPutfield, OpPutfield, OpPutfield,
	0x2a, 0x2a, 0x2a, 0x2a, // fast_aload_0, and with a getfield after it
	0x15, 0x15, 0x15, // fast_iload, with another, with caload
	OpInvoke, opLookup, opLookup, // invokevfinal, linear and binary switch
	0x12, 0x13, 0xb1, OpInvoke, // aldc, aldc_w, return_register_finalizer, invokehandle
	OpGetfield, OpPutfield, 0x2a, 0x15, // nofast: of archived classes
}

// opInvokeHandle is the interpreter's opcode for an invoke of a method of MethodHandle or VarHandle that takes any
// arguments (interpreter/rewriter.cpp, maybe_rewrite_invokehandle).
const opInvokeHandle = 0xe9

// invokeHandle returns opInvokeHandle of a release.
func invokeHandle(jdk8 bool) uint8 {
	if jdk8 {
		return opInvokeHandle - 1
	}
	return opInvokeHandle
}

// fastBPutfield is the index of fast_bputfield in vmBytecodes. JDK 8 lacks the next opcode.
const fastBPutfield = 9

// javaOp returns the opcode of the class file.
func javaOp(op uint8, jdk8 bool) (uint8, bool) {
	if op < opBreakpoint {
		return op, true
	}
	i := int(op) - opFirstOfVM
	if jdk8 && i > fastBPutfield {
		i++
	}
	if i < 0 || i >= len(vmBytecodes) {
		return 0, false
	}
	return vmBytecodes[i], true
}

// Bytecodes reads the bytecodes of a method. It does not use nearMemory, which may have older data than the method.
func (vm *VM) Bytecodes(m *Method) ([]Bytecode, error) {
	_, code, err := vm.readBytecodes(m)
	return code, err
}

// readBytecodes also returns the bytes that it has decoded.
func (vm *VM) readBytecodes(m *Method) (raw []byte, code []Bytecode, err error) {
	if m.CodeSize <= 0 || m.CodeSize > maxBytecodes {
		return nil, nil, fmt.Errorf("%w: %d bytes of bytecode", ErrBadMethod, m.CodeSize)
	}
	raw = make([]byte, m.CodeSize)
	if err = vm.mem.Bytes(m.CodeBegin, raw); err == nil {
		code, err = decodeBytecodes(raw, vm.l.jdk8)
	}
	return raw, code, err
}

func decodeBytecodes(raw []byte, jdk8 bool) ([]Bytecode, error) {
	list := make([]Bytecode, 0, len(raw)/2)
	for at := 0; at < len(raw); {
		op, ok := javaOp(raw[at], jdk8)
		n := 0
		if ok {
			n = bytecodeLength(raw, at, op)
		}
		if n == 0 || at+n > len(raw) {
			return nil, fmt.Errorf("%w: bytecode %d at %d", ErrBadMethod, raw[at], at)
		}
		b := Bytecode{BCI: int32(at), Op: op, Target: -1, Handle: raw[at] == invokeHandle(jdk8)}
		switch {
		case op >= opIconstM1 && op <= opLconst1:
			b.Index = uint16(smallConstants[op-opIconstM1])
		case op == opBipush:
			b.Index = uint16(int8(raw[at+1]))
		case op == opSipush:
			b.Index = binary.BigEndian.Uint16(raw[at+1:])
		case op >= OpGetstatic && op <= OpInvokeInterface: // in the byte order of the machine
			b.Index = binary.LittleEndian.Uint16(raw[at+1:])
		case op >= OpIfeq && op <= opJsr, op == OpIfnull, op == OpIfnonnull:
			b.Target = int32(at) + int32(int16(binary.BigEndian.Uint16(raw[at+1:])))
		case op == opGotoW:
			b.Target = int32(at) + int32(binary.BigEndian.Uint32(raw[at+1:]))
		}
		list = append(list, b)
		at += n
	}
	return list, nil
}

// bytecodeLength returns the length of the instruction at an index. It returns 0 if there is none.
func bytecodeLength(raw []byte, at int, op uint8) int {
	if n := int(bytecodeLengths[op] - '0'); n != 0 {
		return n
	}
	if op == opWide {
		if at+1 < len(raw) && raw[at+1] == opIinc {
			return 6
		}
		return 4
	}
	operands := at&^3 + 4
	if operands+12 > len(raw) {
		return 0
	}
	long := func(i int) int64 { return int64(int32(binary.BigEndian.Uint32(raw[operands+4*i:]))) }
	n := int64(operands - at)
	if op == opTableswitch {
		n += 12 + 4*(long(2)-long(1)+1)
	} else {
		n += 8 + 8*long(1)
	}
	if n <= 0 || n > int64(len(raw)) {
		return 0
	}
	return int(n)
}

// BytecodeAt returns the position in code of the bytecode with index bci, -1 if there is none.
func BytecodeAt(code []Bytecode, bci int32) int {
	most := min(len(code), int(max(bci, -1))+1) // each has at least one byte
	i := sort.Search(most, func(i int) bool { return code[i].BCI >= bci })
	if i == len(code) || code[i].BCI != bci {
		return -1
	}
	return i
}
