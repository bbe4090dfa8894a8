package vmstructs

import (
	"slices"
	"testing"
)

func TestBytecodes(t *testing.T) {
	for _, r := range []struct {
		name string
		jdk8 bool
		code []byte
		want []Bytecode // nil: refused
	}{
		{"arithmetic", false, []byte{0x1a, 0x10, 31, 0x68, 0xac},
			[]Bytecode{{0, 0x1a, false, 0, -1}, {1, 0x10, false, 31, -1},
				{3, 0x68, false, 0, -1}, {4, 0xac, false, 0, -1}}},
		{"a loop", false, []byte{0x1a, 0x9e, 0, 7, 0xa7, 0xff, 0xfc, 0x00, 0xb1},
			[]Bytecode{{0, 0x1a, false, 0, -1}, {1, 0x9e, false, 0, 8}, {4, OpGoto, false, 0, 0}, {7, 0, false, 0, -1},
				{8, OpReturn, false, 0, -1}}},
		{"a table", false, []byte{0xaa, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 20, 0xb1},
			[]Bytecode{{0, opTableswitch, false, 0, -1}, {20, OpReturn, false, 0, -1}}},
		{"the interpreter's own lookup", false, []byte{0x00, 0xe4, 0, 0, 0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0,
			19, 0xb1},
			[]Bytecode{{0, 0, false, 0, -1}, {1, opLookup, false, 0, -1}, {20, OpReturn, false, 0, -1}}},
		{"wide", false, []byte{0xc4, 0x84, 1, 0, 1, 0, 0xc4, 0x15, 1, 0, 0xac},
			[]Bytecode{{0, opWide, false, 0, -1}, {6, opWide, false, 0, -1}, {10, OpIreturn, false, 0, -1}}},
		{"fast_igetfield behind fast_iaccess_0", false, []byte{0xdd, 0xd0, 0, 0, 0xac}, []Bytecode{{0, 0x2a, false, 0, -1},
			{1, OpGetfield, false, 0, -1}, {4, OpIreturn, false, 0, -1}}},
		{"fast_zputfield", false, []byte{0xd5, 0, 0, 0xb1},
			[]Bytecode{{0, OpPutfield, false, 0, -1}, {3, OpReturn, false, 0, -1}}},
		{"fast_invokevfinal, of JDK 8 too", true, []byte{0xe2, 0, 0, 0xb1},
			[]Bytecode{{0, OpInvoke, false, 0, -1}, {3, OpReturn, false, 0, -1}}},
		{"fast_aload_0, of JDK 8 too", true, []byte{0xdb, 0xb0},
			[]Bytecode{{0, 0x2a, false, 0, -1}, {1, 0xb0, false, 0, -1}}},
		{"a call of a handle", false, []byte{0xe9, 7, 0, 0xb6, 8, 0, 0xb1},
			[]Bytecode{{0, OpInvoke, true, 7, -1}, {3, OpInvoke, false, 8, -1}, {6, OpReturn, false, 0, -1}}},
		{"a call of a handle in JDK 8", true, []byte{0xe8, 7, 0, 0xb1}, []Bytecode{{0, OpInvoke, true, 7, -1},
			{3, OpReturn, false, 0, -1}}},
		{"no bytecode", false, []byte{0xfe}, nil},
		{"a breakpoint", false, []byte{0xca, 0xb1}, nil},
		{"cut off", false, []byte{0x11, 0}, nil},
		{"an endless table", false, []byte{0xaa, 0, 0, 0, 0, 0, 0, 20, 0x80, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0,
			20, 0xb1}, nil},
		{"a lookup of less than nothing", false, []byte{0xab, 0, 0, 0, 0, 0, 0, 20, 0xff, 0xff, 0xff, 0xff, 0, 0, 0,
			20, 0xb1}, nil},
	} {
		got, err := decodeBytecodes(r.code, r.jdk8)
		if !slices.Equal(got, r.want) || (err == nil) != (r.want != nil) {
			t.Errorf("%s: %v %v, not %v", r.name, got, err, r.want)
		}
	}
}

// FuzzBytecodes: for any bytes, the list covers them from the first to the last.
func FuzzBytecodes(f *testing.F) {
	f.Add([]byte{0x1a, 0x9e, 0, 7, 0xa7, 0xff, 0xfc, 0x00, 0xb1}, false)
	f.Add([]byte{0xab, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 20, 0xb1}, true)
	f.Fuzz(func(t *testing.T, code []byte, jdk8 bool) {
		list, err := decodeBytecodes(code, jdk8)
		if err != nil {
			return
		}
		next := int32(0)
		for i, b := range list {
			if b.BCI < next || int(b.BCI) >= len(code) || BytecodeAt(list, b.BCI) != i {
				t.Fatalf("%d: %+v behind %d", i, b, next)
			}
			next = b.BCI + 1
		}
	})
}

// TestConstant: the numbers that bytecodes push onto the operand stack.
func TestConstant(t *testing.T) {
	code, err := decodeBytecodes([]byte{0x02, 0x03, 0x08, 0x09, 0x0a, 0x10, 0x80, 0x11, 0xff, 0x00, 0x11, 0x12, 0x34, 0x01,
		0x0b, 0x12, 7, 0x1a, 0xb1}, false)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{-1, 0, 5, 0, 1, -128, -256, 0x1234} {
		if got, ok := code[i].Constant(); got != want || !ok {
			t.Errorf("%+v: %d, not %d", code[i], got, want)
		}
	}
	for _, b := range code[8:] { // null, a float, a constant of the pool, a local variable
		if got, ok := b.Constant(); ok {
			t.Errorf("%+v: %d", b, got)
		}
	}
}

// TestListingOfChangingCode: after a reading, a wide iload is replaced by a wide iinc, which is longer.
func TestListingOfChangingCode(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		m, err := w.vm.Method(w.method(w.class("app/Main", "Main.java"), 1, "name", "()V", nil))
		if err != nil {
			t.Fatal(err)
		}
		wide, reads := m.CodeBegin+uint64(m.CodeSize)-4, 0
		w.onRead = func(addr uint64) {
			if addr != m.CodeBegin {
				return
			}
			w.put(wide, opWide, opIload, 1, 0)
			if reads++; reads > 1 {
				w.put(wide+1, opIinc)
			}
		}
		list, err := w.vm.Listing(m)
		if err != nil || list[len(list)-1].Text != "wide iload 256" {
			t.Errorf("%v %v", list, err)
		}
	})
}
