package unwind

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/go-delve/delve/pkg/dwarf/op"

	"goprof/arch"
	"goprof/arch/amd64"
	"goprof/process"
	"goprof/profile"
)

// noTarget is a process without contents.
type noTarget struct{ process.Target }

func (noTarget) CPU() *arch.CPU { return amd64.CPU }

// evaluator is a walker with a small stack. Each register holds its own number.
func evaluator() *Walker {
	w := New(noTarget{}, nil)
	w.snap = &process.Snapshot{SP: 0x7000, Stack: make([]byte, 64)}
	for i := range 8 {
		binary.LittleEndian.PutUint64(w.snap.Stack[8*i:], uint64(0x1111*i))
	}
	w.out = &profile.Stack{}
	w.begin()
	w.cur.known = 1<<17 - 1
	for i := range w.cur.regs {
		w.cur.regs[i] = uint64(0x7000 + i)
	}
	return w
}

// usualExpressions are expressions of compilers and C libraries.
var usualExpressions = map[string][]byte{
	"glibc, __restore_rt, frame address": {byte(op.DW_OP_breg0) + 7, 0xa0, 0x01, byte(op.DW_OP_deref)},
	"glibc, __restore_rt, a register":    {byte(op.DW_OP_breg0) + 7, 0x28},
	"ld, the procedure linkage table":    {0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22},
	"gcc, a realigned stack":             {byte(op.DW_OP_breg0) + 6, 0x78, byte(op.DW_OP_deref)},
	"a constant":                         {byte(op.DW_OP_const8u), 1, 2, 3, 4, 5, 6, 7, 8},
	"a jump": {byte(op.DW_OP_lit0) + 1, byte(op.DW_OP_bra), 1, 0, byte(op.DW_OP_nop),
		byte(op.DW_OP_lit0) + 5},
	"round in circles": {byte(op.DW_OP_lit0), byte(op.DW_OP_skip), 0xfc, 0xff},
	"a block of 64 GB": {byte(op.DW_OP_implicit_value), 0x80, 0x80, 0x80, 0x80, 0x80, 0x02},
	"a number without end": {byte(op.DW_OP_constu), 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
		0x80, 0x80, 0x80},
	"a division by zero":                  {byte(op.DW_OP_lit0) + 1, byte(op.DW_OP_lit0), byte(op.DW_OP_div)},
	"a read of memory beyond the stack":   {byte(op.DW_OP_lit0), byte(op.DW_OP_deref)},
	"a read of 255 bytes":                 {byte(op.DW_OP_breg0) + 7, 0, byte(op.DW_OP_deref_size), 0xff},
	"a register, where a value is wanted": {byte(op.DW_OP_reg0) + 3},
}

func TestExpressions(t *testing.T) {
	w := evaluator()
	cfa := uint64(0x7010)
	for name, want := range map[string]uint64{
		"glibc, __restore_rt, a register": 0x7007 + 0x28,
		"ld, the procedure linkage table": 0x7007 + 8, // rip & 15 is 0 here
		"a jump":                          5,
		"a constant":                      0x0807060504030201,
	} {
		if got, ok := w.evaluate(&w.cur, usualExpressions[name], &cfa); !ok || got != want {
			t.Errorf("%s: %#x %v, want %#x", name, got, ok, want)
		}
	}
	for _, name := range []string{"a block of 64 GB", "a number without end", "a division by zero",
		"a read of memory beyond the stack", "a read of 255 bytes", "a register, where a value is wanted"} {
		if got, ok := w.evaluate(&w.cur, usualExpressions[name], nil); ok {
			t.Errorf("%s: %#x", name, got)
		}
	}
	if got, ok := w.evaluate(&w.cur, nil, &cfa); !ok || got != cfa {
		t.Errorf("what it begins with: %#x %v", got, ok)
	}
	n := 0
	for ; n < 1<<20; n++ {
		if _, ok := w.evaluate(&w.cur, usualExpressions["round in circles"], nil); !ok {
			break
		}
	}
	if n == 0 || n > maxEvaluated {
		t.Errorf("%d expressions in one walk", n)
	}
	w.begin()
	if _, ok := w.evaluate(&w.cur, usualExpressions["a constant"], nil); !ok {
		t.Error("the next walk may not evaluate any more")
	}
}

// delve's evaluator panics on some expressions. A target's files may have these, but goprof does not crash.
func TestExpressionsThatPanic(t *testing.T) {
	panics := func(expr []byte) (did bool) {
		defer func() { did = recover() != nil }()
		regs := op.NewDwarfRegisters(0, nil, binary.LittleEndian, 0, 0, 0, 0)
		_, _, _ = op.ExecuteStackProgram(*regs, expr, 8, func([]byte, uint64) (int, error) { return 0, process.ErrFault })
		return false
	}
	for name, expr := range map[string][]byte{
		"an addition to nothing":   {byte(op.DW_OP_plus_uconst), 1},
		"a division by zero":       usualExpressions["a division by zero"],
		"a number that has no end": usualExpressions["a number without end"],
	} {
		if !panics(expr) {
			t.Errorf("%s: the evaluator does not panic any more", name)
		}
		w := evaluator()
		if v, ok := w.evaluate(&w.cur, expr, nil); ok {
			t.Errorf("%s: %#x", name, v)
		}
	}
}

// FuzzExpression compares the result with that of a second evaluator, for the instructions that the second one
// knows.
func FuzzExpression(f *testing.F) {
	for _, expr := range usualExpressions {
		f.Add(expr, uint64(0x7010), true)
		f.Add(expr, uint64(0x9e9e9e9e9e9e9e9e), false)
	}
	w := evaluator()
	f.Fuzz(func(t *testing.T, expr []byte, cfa uint64, pushed bool) {
		if len(expr) > 4096 {
			return
		}
		w.evaluated = 0
		initial := &cfa
		if !pushed {
			initial = nil
		}
		got, ok := w.evaluate(&w.cur, expr, initial)
		want, known := slowExpression(w, expr, initial)
		if known && !hasBlock(expr) && (!ok || got != want) {
			t.Fatalf("%#x %v, want %#x", got, ok, want)
		}
	})
}

// slowExpression evaluates the instructions of real unwind rules. known is false for any other instruction, and after
// an error.
func slowExpression(w *Walker, expr []byte, initial *uint64) (v uint64, known bool) {
	var stack []uint64
	if initial != nil {
		stack = append(stack, *initial)
	}
	leb := func(signed bool) (v uint64, ok bool) {
		for shift := 0; len(expr) > 0 && shift < 63; shift += 7 {
			b := expr[0]
			expr = expr[1:]
			v |= uint64(b&0x7f) << shift
			if b < 0x80 {
				if signed && b&0x40 != 0 {
					v |= math.MaxUint64 << (shift + 7)
				}
				return v, true
			}
		}
		return 0, false
	}
	for len(expr) > 0 {
		o := op.Opcode(expr[0])
		expr = expr[1:]
		n := len(stack)
		switch {
		case o >= op.DW_OP_lit0 && o <= op.DW_OP_lit31:
			stack = append(stack, uint64(o-op.DW_OP_lit0))
		case o >= op.DW_OP_breg0 && o < op.DW_OP_breg0+17:
			off, ok := leb(true)
			if !ok {
				return 0, false
			}
			stack = append(stack, w.cur.regs[o-op.DW_OP_breg0]+off)
		case o == op.DW_OP_plus_uconst && n > 0:
			off, ok := leb(false)
			if !ok {
				return 0, false
			}
			stack[n-1] += off
		case o == op.DW_OP_deref && n > 0:
			at := stack[n-1] - w.snap.SP
			if at > uint64(len(w.snap.Stack)-8) {
				return 0, false
			}
			stack[n-1] = binary.LittleEndian.Uint64(w.snap.Stack[at:])
		case n >= 2 && (o == op.DW_OP_and || o == op.DW_OP_plus || o == op.DW_OP_minus || o == op.DW_OP_shl ||
			o == op.DW_OP_ge):
			a, b := stack[n-2], stack[n-1]
			var r uint64
			switch o {
			case op.DW_OP_and:
				r = a & b
			case op.DW_OP_plus:
				r = a + b
			case op.DW_OP_minus:
				r = a - b
			case op.DW_OP_shl:
				r = a << b
			case op.DW_OP_ge:
				if int64(a) >= int64(b) {
					r = 1
				}
			}
			stack = append(stack[:n-2], r)
		default:
			return 0, false
		}
	}
	if len(stack) == 0 {
		return 0, false
	}
	return stack[len(stack)-1], true
}
