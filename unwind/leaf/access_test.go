package leaf

import (
	"encoding/binary"
	"encoding/hex"
	"testing"

	"goprof/arch/amd64"
	"goprof/arch/arm64"
	"goprof/process"
	"goprof/vmstructs"
)

// TestLoads: to which bytecode a load belongs that reads at an offset of an object. The fields a and b are at 20 and
// 24.
func TestLoads(t *testing.T) {
	at := func(bci int32, op uint8) vmstructs.Bytecode { return vmstructs.Bytecode{BCI: bci, Op: op, Target: -1} }
	inner, outer := &vmstructs.Method{Name: "inner"}, &vmstructs.Method{Name: "outer"}
	const iaload, add = vmstructs.OpIaload, vmstructs.OpIadd
	f := &Finder{cpu: amd64.CPU, vm: scaledVM(t), bytecode: map[*vmstructs.Method][]vmstructs.Bytecode{
		inner: {at(0, vmstructs.OpGetfield), at(1, add), at(2, vmstructs.OpReturn)},
		outer: {at(0, vmstructs.OpGetfield), at(1, add), at(2, iaload), at(3, vmstructs.OpGetfield), at(4, add),
			at(5, vmstructs.OpArraylength), at(6, vmstructs.OpReturn)},
	}, fields: map[invokeSite]int32{{inner, 0}: 20, {outer, 0}: 20, {outer, 3}: 24}}
	in := func(m *vmstructs.Method, bci int32) []vmstructs.Scope {
		s := []vmstructs.Scope{{Method: m, BCI: bci}}
		if m == inner {
			s = append(s, vmstructs.Scope{Method: outer, BCI: 1})
		}
		return s
	}
	for _, r := range []struct {
		name, code string
		from, to   []vmstructs.Scope
		want       int32 // the bytecode of outer, -1: not known
	}{
		{"one field at the offset", "8b4314", in(outer, 0), in(outer, 6), 0},
		{"the other field", "8b4318", in(outer, 0), in(outer, 6), 3},
		{"no field at the offset", "8b431c", in(outer, 0), in(outer, 6), -1},
		{"a field off the route", "8b4314", in(outer, 1), in(outer, 6), -1},
		{"two methods with a field at the offset", "8b4314", in(outer, 0), in(inner, 2), -1},
		{"an element", "428b448b10", in(outer, 0), in(outer, 6), 2},
		{"a length, or a field before the route", "8b430c", in(outer, 3), in(outer, 6), -1},
		{"a length, or that for an element: of one method", "8b430c", in(outer, 0), in(outer, 6), 2},
		{"a length, or a field before a route through two methods", "8b430c", in(inner, 1), in(outer, 2), -1},
		{"the same by a compressed reference", "438b44dc0c", in(inner, 1), in(outer, 2), -1},
		{"an element on such a route", "428b448b10", in(inner, 1), in(outer, 3), 2},
		{"the same, by a route through two methods", "8b430c", in(inner, 0), in(outer, 6), -1},
		{"no way leads to the second method", "8b4314", in(outer, 6), in(inner, 2), -1},
		{"a store", "894314", in(outer, 0), in(outer, 6), -1},
		{"a sum with a field", "034314", in(outer, 0), in(outer, 6), -1},
		{"a load from the stack", "8b442414", in(outer, 0), in(outer, 6), -1},
	} {
		code, err := hex.DecodeString(r.code)
		if err != nil {
			t.Fatal(err)
		}
		m := &codeMap{cpu: f.cpu}
		m.begin(code, 0, func(func(uint64) bool) {})
		q := questionIn(f, &vmstructs.Blob{Level: levelC2}, m)
		way := router{q: q, load: q.loadAt(m.place(0))}
		way.between(r.from, r.to, 1, 1)
		got := int32(-1)
		if way.isLoad() {
			got = way.found[0].scopes[0].BCI
		}
		if got != r.want {
			t.Errorf("%s: bytecode %d, not %d", r.name, got, r.want)
		}
	}
}

// TestLoadsOfLongRoutes: a route with more than two legs shows nothing.
func TestLoadsOfLongRoutes(t *testing.T) {
	m := &codeMap{cpu: amd64.CPU}
	m.begin([]byte{0x8b, 0x43, 0x14}, 0, func(func(uint64) bool) {})
	m.place(0)
	one := foundCall{scopes: []vmstructs.Scope{{Method: &vmstructs.Method{}}}}
	f := &Finder{bytecode: map[*vmstructs.Method][]vmstructs.Bytecode{one.scopes[0].Method: {}}}
	for legs, want := range []bool{1: true, 2: true, 3: false} {
		r := router{q: questionIn(f, &vmstructs.Blob{}, m), load: loadsElement, found: []foundCall{one},
			legs: make([]leg, legs)}
		if legs > 0 && r.isLoad() != want {
			t.Errorf("%d legs: %v", legs, !want)
		}
	}
}

// TestReadsElement: an index is that of an element, unless it is a compressed reference.
func TestReadsElement(t *testing.T) {
	scaled, plain := scaledVM(t), &Finder{cpu: amd64.CPU, vm: emptyVM(t)}
	for _, r := range []struct {
		name string
		f    *Finder
		i    instruction
		want bool
	}{
		{"no index", plain, instruction{}, false},
		{"an index", &Finder{cpu: amd64.CPU, vm: scaled}, instruction{indexed: true}, true},
		{"a reference", &Finder{cpu: amd64.CPU, vm: scaled}, instruction{indexed: true, narrow: true}, false},
		{"references are not compressed", plain, instruction{indexed: true, narrow: true}, true},
		{"arm64, the heap begins at zero", &Finder{cpu: arm64.CPU, vm: scaled}, instruction{indexed: true, narrow: true},
			true},
		{"arm64, the heap begins elsewhere", &Finder{cpu: arm64.CPU, vm: basedVM(t)},
			instruction{indexed: true, narrow: true}, false},
	} {
		if got := r.f.readsElement(&r.i); got != r.want {
			t.Errorf("%s: %v", r.name, got)
		}
	}
}

// scaledVM makes a VM whose references count eight bytes from zero, basedVM one whose heap begins elsewhere, emptyVM
// one whose references are not compressed.
func scaledVM(t *testing.T) *vmstructs.VM { return vmOfHeap(t, 3, 0) }

func basedVM(t *testing.T) *vmstructs.VM { return vmOfHeap(t, 3, 1<<40) }

func emptyVM(t *testing.T) *vmstructs.VM { return vmOfHeap(t, 0, 0) }

func vmOfHeap(t *testing.T, shift, base uint64) *vmstructs.VM {
	t.Helper()
	rec, _ := recorded(t, recordings(t, "walks")[0])
	heap := &heapOf{Target: rec, shift: shift, base: base}
	vm, err := vmstructs.Open(heap)
	if err != nil {
		t.Fatal(err)
	}
	heap.open = true
	return vm
}

// heapOf takes the place of a recording's memory, which has only the shift and the base of references.
type heapOf struct {
	process.Target
	shift, base uint64
	open        bool
}

func (h *heapOf) Read(addr uint64, p []byte) error {
	err := h.Target.Read(addr, p)
	if err == nil || !h.open {
		return err
	}
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], h.shift)
	if len(p) == 8 {
		binary.LittleEndian.PutUint64(word[:], h.base)
	}
	copy(p, word[:])
	return nil
}
