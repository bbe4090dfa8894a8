package unwind

import (
	"encoding/hex"
	"testing"

	"goprof/arch/amd64"
	"goprof/vmstructs"
)

// TestLoads: whose a load is, if it reads at an offset of an object. Fields a and b are at 20 and 24.
func TestLoads(t *testing.T) {
	at := func(bci int32, op uint8) vmstructs.Bytecode { return vmstructs.Bytecode{BCI: bci, Op: op, Target: -1} }
	inner, outer := &vmstructs.Method{Name: "inner"}, &vmstructs.Method{Name: "outer"}
	const iaload, add = vmstructs.OpIaload, vmstructs.OpIadd
	w := &Walker{cpu: amd64.CPU, bytecode: map[*vmstructs.Method][]vmstructs.Bytecode{
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
		{"a length", "8b430c", in(outer, 3), in(outer, 6), 5},
		{"a length, or that for an element: of one method", "8b430c", in(outer, 0), in(outer, 6), 2},
		{"a length on a route through two methods, or a field before it", "8b430c", in(inner, 1), in(outer, 2), -1},
		{"an element on such a route", "428b448b10", in(inner, 1), in(outer, 3), 2},
		{"the same, by a route through two methods", "8b430c", in(inner, 0), in(outer, 6), -1},
		{"a store", "894314", in(outer, 0), in(outer, 6), -1},
		{"a sum with a field", "034314", in(outer, 0), in(outer, 6), -1},
		{"a load from the stack", "8b442414", in(outer, 0), in(outer, 6), -1},
	} {
		code, err := hex.DecodeString(r.code)
		if err != nil {
			t.Fatal(err)
		}
		m := &codeMap{cpu: w.cpu}
		m.begin(code, 0, func(func(uint64) bool) {})
		way := router{w: w, level: levelC2, load: w.loadAt(&vmstructs.Blob{Level: levelC2}, m, m.place(0))}
		way.between(r.from, r.to, 1, 1)
		way.code = m // from here on: the route asks for no invokes
		got := int32(-1)
		if way.isLoad() {
			got = way.found[0].scopes[0].BCI
		}
		if got != r.want {
			t.Errorf("%s: bytecode %d, not %d", r.name, got, r.want)
		}
	}
}

// TestLoadsOfLongRoutes: a route through more than two legs says nothing.
func TestLoadsOfLongRoutes(t *testing.T) {
	one := foundCall{scopes: []vmstructs.Scope{{}}}
	for legs, want := range []bool{1: true, 2: true, 3: false} {
		r := router{load: loadsElement, found: []foundCall{one}, legs: make([]leg, legs)}
		if legs > 0 && r.isLoad() != want {
			t.Errorf("%d legs: %v", legs, !want)
		}
	}
}
