package vmstructs

import "testing"

// TestHeaders: the flags of a JVM are read once, and their table is not kept for that.
func TestHeaders(t *testing.T) {
	for _, j := range someTables(t) {
		t.Run(j.name, func(t *testing.T) {
			for _, r := range []struct {
				flag    string
				compact bool
				length  int32
			}{
				{"UseCompactObjectHeaders", true, 8}, {"UseCompressedClassPointers", false, 12},
				{"-UseCompressedClassPointers", false, 16}, {"UseZGC", false, 12},
			} {
				w := newHostileWorld(t, j)
				w.putFlags(r.flag)
				vm, _, err := w.openAs(j.tab)
				if err != nil {
					t.Fatal(err)
				}
				vm.ForgetFlags()
				for range 2 {
					compact, length := vm.CompactHeaders(), vm.ArrayLength()
					if compact != r.compact || length != r.length || vm.flagTab.read {
						t.Errorf("%s: %v, length at %d, table kept: %v", r.flag, compact, length, vm.flagTab.read)
					}
				}
			}
		})
	}
}

// TestScalesReferences: a reference counts units of eight bytes, from the heap's base, if its shift is three. The
// results are cached.
func TestScalesReferences(t *testing.T) {
	for _, j := range someTables(t) {
		t.Run(j.name, func(t *testing.T) {
			for shift, want := range map[uint32]bool{0: false, 3: true, 4: false} {
				w := newHostileWorld(t, j)
				w.l.oops.narrowShift = w.alloc(8)
				w.put32(w.l.oops.narrowShift, shift)
				w.l.oops.narrowBase = w.alloc(8)
				w.put64(w.l.oops.narrowBase, uint64(shift)<<32)
				vm := newVM(w, w.l)
				if got := vm.ScalesReferences(); got != want {
					t.Errorf("shift %d: %v", shift, got)
				}
				if got := vm.HeapHasBase(); got != (shift != 0) {
					t.Errorf("the heap has a base: %v", got)
				}
				w.put32(w.l.oops.narrowShift, 7)
				if got := vm.ScalesReferences(); got != want {
					t.Errorf("shift %d: the answer is not kept", shift)
				}
				w.l.oops.narrowShift = 0
				if newVM(w, w.l).ScalesReferences() {
					t.Errorf("a JVM that does not tell the shift")
				}
			}
		})
	}
}

// TestDataOf: a method's profile is at the address in the method, if the JVM exports the offset of that address.
func TestDataOf(t *testing.T) {
	for _, j := range someTables(t) {
		t.Run(j.name, func(t *testing.T) {
			w := newHostileWorld(t, j)
			m := &Method{Addr: w.alloc(256)}
			at := w.l.method.data
			if !at.ok() {
				t.Fatal("Method._method_data is not told")
			}
			vm := newVM(w, w.l)
			if got := vm.DataOf(m); got != 0 {
				t.Errorf("none yet: %#x", got)
			}
			w.put64(m.Addr+uint64(at), 0x7f0012345678)
			if got := vm.DataOf(m); got != 0x7f0012345678 {
				t.Errorf("%#x", got)
			}
			w.l.method.data = absent
			if got := newVM(w, w.l).DataOf(m) | vm.DataOf(&Method{}); got != 0 {
				t.Errorf("nobody knows: %#x", got)
			}
		})
	}
}
