package vmstructs

import (
	"encoding/binary"
	"testing"
)

// TestMajorReceiver: the words of a profile tell what an invoke calls if it is the only type, or has 90 % of all calls.
func TestMajorReceiver(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		l := &w.l.invoke.named
		method := w.method(w.class("app/Impl", "Impl.java"), 1, "run", "()V", nil)
		name, signature := w.vm.symbolsOf(method)
		if !l.methods.ok() || name == 0 || signature == 0 {
			t.Fatal("no methods by their names")
		}
		class := func() uint64 { // with that one method
			klass, array := w.alloc(2048), w.alloc(64)
			w.put32(array+uint64(w.l.method.arrayLen), 1)
			w.put64(array+uint64(l.data), method)
			w.put64(klass+uint64(l.methods), array)
			w.put64(klass+uint64(l.super), 0)
			return klass
		}
		one, other := class(), class()
		for _, r := range []struct {
			name  string
			words []uint64
			want  bool
		}{
			{"nothing", nil, false},
			{"no type", []uint64{7, 0, 0, 0, 0}, false},
			{"a type without a call", []uint64{0, one, 0, 0, 0}, false},
			{"one type", []uint64{0, one, 3, 0, 0}, true},
			{"one type, and C1 counted the rest", []uint64{1000, one, 3, 0, 0}, true},
			{"one type behind two counts", []uint64{0, 8, one, 3, 0, 0}, true},
			{"most calls", []uint64{0, one, 95, other, 5}, true},
			{"the second type has most", []uint64{0, one, 5, other, 95}, true},
			{"half of the calls, and few", []uint64{0, one, 50, other, 49}, false},
			{"not quite enough", []uint64{0, one, 980, other, 119}, false},
			{"others, for which there was no room", []uint64{100, one, 95, other, 5}, false},
		} {
			var raw []byte
			for _, word := range r.words {
				raw = binary.LittleEndian.AppendUint64(raw, word)
			}
			got, ok := w.vm.majorReceiver(raw, methodConstant{1, name, signature})
			if ok != r.want || ok && got != method {
				t.Errorf("%s: %#x %v, the method is %#x", r.name, got, ok, method)
			}
		}
	})
}
