package vmstructs

import (
	"encoding/binary"
	"testing"
)

// TestMajorReceiver: the words of a profile show which method an invoke calls, if there is only one type, or one with
// 90 % of all calls.
func TestMajorReceiver(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		l := &w.l.invoke.named
		method := w.method(w.class("app/Impl", "Impl.java"), 1, "run", "()V", nil)
		name, signature := w.vm.symbolsOf(method)
		if !l.methods.ok() || name == 0 || signature == 0 {
			t.Fatal("no methods by their names")
		}
		class := func() uint64 { // has only that method
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

// TestProfileData: in all releases that export the beginning of a profile, it is the last word of MethodData. So this
// is assumed for the others.
func TestProfileData(t *testing.T) {
	told := 0
	for _, j := range loadTables(t) {
		l, _ := resolve(j.tab)
		f, ok := j.tab.fields[fieldName{"MethodData", "_data[0]"}]
		if ok {
			told++
			delete(j.tab.fields, fieldName{"MethodData", "_data[0]"})
		}
		without, _ := resolve(j.tab)
		if at := without.profile.data; !at.ok() || at != l.profile.data || ok && uint64(at) != f.offset {
			t.Errorf("%s: at %d, without that field at %d, as told %d", j.name, l.profile.data, at, f.offset)
		}
		j.tab.sizes["MethodData"] = 12
		if at := (&resolver{t: j.tab, missing: map[string][]string{}, odd: map[string]string{}}).profileData(); at.ok() {
			t.Errorf("%s: MethodData of 12 bytes has a profile at %d", j.name, at)
		}
	}
	if told < 10 {
		t.Errorf("%d releases tell it", told)
	}
}

// TestReceivers: the words of an invoke in a method's profile are found by its bytecode, and only in that method's
// profile.
func TestReceivers(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		l := &w.l.profile
		m := &Method{Addr: w.alloc(256)}
		profile := w.alloc(int(l.data) + 256)
		w.put64(m.Addr+uint64(w.l.method.data), profile)
		w.put64(profile+uint64(l.method), m.Addr)
		for i, word := range []uint64{
			2 | 3<<16, 5, // a counter, at bytecode 3
			uint64(l.call) | 9<<16, 1, 0x1000, 7, 0, 0, // an invoke, at 9
			uint64(l.callOfType) | 12<<16, 2, 0x2000, 8, 0, 0, 1, 0,
		} {
			w.put64(profile+uint64(l.data)+8*uint64(i), word)
		}
		for _, r := range []struct {
			bci  uint16
			want uint64 // the second word
		}{{9, 0x1000}, {12, 0x2000}, {3, 0}, {8, 0}} {
			got := uint64(0)
			if words := w.vm.receivers(m, r.bci); len(words) >= 16 {
				got = word(words[8:])
			}
			if got != r.want {
				t.Errorf("at %d: %#x", r.bci, got)
			}
		}
		w.put64(profile+uint64(l.method), m.Addr+8)
		if words := w.vm.receivers(m, 9); words != nil {
			t.Errorf("another method's profile: %x", words)
		}
		w.put64(m.Addr+uint64(w.l.method.data), profile+4)
		if words := w.vm.receivers(m, 9); words != nil {
			t.Errorf("not aligned: %x", words)
		}
	})
}
