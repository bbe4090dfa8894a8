package leaf

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"goprof/vmstructs"
)

// TestRoute: the methods that run between two places, and for how many quarters of an instruction each.
func TestRoute(t *testing.T) {
	f := &Finder{bytecode: map[*vmstructs.Method][]vmstructs.Bytecode{}}
	method := func(name string, ops ...vmstructs.Bytecode) *vmstructs.Method {
		m := &vmstructs.Method{Name: name}
		f.bytecode[m] = ops
		return m
	}
	plain := func(n int32) (ops []vmstructs.Bytecode) {
		for i := range n {
			ops = append(ops, vmstructs.Bytecode{BCI: i, Op: vmstructs.OpIadd, Target: -1})
		}
		return append(ops, vmstructs.Bytecode{BCI: n, Op: vmstructs.OpReturn, Target: -1})
	}
	outer, middle, inner := method("outer", plain(100)...), method("middle", plain(50)...), method("inner", plain(10)...)
	loop := method("loop", vmstructs.Bytecode{BCI: 0, Op: vmstructs.OpIadd, Target: -1}, vmstructs.Bytecode{BCI: 1,
		Op: vmstructs.OpIadd, Target: -1},
		vmstructs.Bytecode{BCI: 2, Op: vmstructs.OpGoto, Target: 0})
	unread := method("unread")
	chain := func(s ...any) (c []vmstructs.Scope) {
		for i := 0; i < len(s); i += 2 {
			c = append(c, vmstructs.Scope{Method: s[i].(*vmstructs.Method), BCI: int32(s[i+1].(int))})
		}
		return c
	}
	for _, r := range []struct {
		name     string
		from, to []vmstructs.Scope
		want     string
	}{
		{"on in one method", chain(outer, 10), chain(outer, 20), "outer 44"},
		{"out of an inlined one", chain(inner, 4, outer, 10), chain(outer, 20), "inner 25, outer 40"},
		{"into one", chain(outer, 10), chain(inner, 4, outer, 20), "outer 44, inner 20"},
		{"out of two and into one", chain(inner, 4, middle, 5, outer, 10), chain(inner, 9, outer, 20),
			"inner 25, middle 177, outer 40, inner 40"},
		{"on below a call of both", chain(inner, 4, middle, 5, outer, 10), chain(middle, 9, outer, 10),
			"inner 25, middle 16"},
		{"the same place", chain(inner, 4, outer, 10), chain(inner, 4, outer, 10), "inner 4"},
		{"another method of one call", chain(inner, 4, outer, 10), chain(middle, 1, outer, 10), "inner 25, middle 8"},
		{"round a loop", chain(loop, 2), chain(loop, 1), "loop 16"},
		{"recursion", chain(outer, 10, outer, 10), chain(outer, 12), "outer 361, outer 8"},
		{"bytecodes that cannot be read", chain(unread, 2), chain(inner, 3, unread, 1), "unread 1, inner 16"},
	} {
		var text []string
		way := router{q: questionIn(f, &vmstructs.Blob{}, &codeMap{tree: &vmstructs.SiteTable{}})}
		way.route(r.from, r.to)
		for _, l := range way.legs {
			text = append(text, fmt.Sprintf("%s %d", l.scopes[0].Method.Name, l.work/16))
		}
		if got := strings.Join(text, ", "); got != r.want {
			t.Errorf("%s: %s, not %s", r.name, got, r.want)
		}
	}
	// The way has 25 + 40 instructions. The first 25 are inner's: five of thirteen parts.
	from, to := chain(inner, 4, outer, 10), chain(outer, 20)
	for done := 1; done < 13; done++ {
		want := "outer"
		if done < 5 {
			want = "inner"
		}
		way := router{q: questionIn(f, &vmstructs.Blob{}, &codeMap{tree: &vmstructs.SiteTable{}})}
		if got := way.between(from, to, done, 13-done)[0].Method.Name; got != want {
			t.Errorf("%d of 13 instructions behind: %s, not %s", done, got, want)
		}
	}
}

// TestUnresolvedInvoke: a loop whose invoke the interpreter has not resolved. The program goes around through the
// invoke if there is no other way around.
func TestUnresolvedInvoke(t *testing.T) {
	const ifeq = 0x99
	at := func(bci int32, op uint8, target int32) vmstructs.Bytecode {
		return vmstructs.Bytecode{BCI: bci, Op: op, Target: target}
	}
	leaf := &vmstructs.Method{Name: "leaf", CodeSize: 9}
	f := &Finder{bytecode: map[*vmstructs.Method][]vmstructs.Bytecode{}, callees: map[invokeSite]knownInvoke{}}
	for i := range int32(8) {
		f.bytecode[leaf] = append(f.bytecode[leaf], at(i, vmstructs.OpIadd, -1))
	}
	f.bytecode[leaf] = append(f.bytecode[leaf], at(8, vmstructs.OpReturn, -1))
	for _, r := range []struct {
		name   string
		second vmstructs.Bytecode
		space  int
		want   string
		needed bool
	}{
		{"the only way around", at(1, vmstructs.OpIadd, -1), 100, "leaf", true},
		{"no room for the way", at(1, vmstructs.OpIadd, -1), 1, "loop", true},
		{"another way around", at(1, ifeq, 3), 100, "loop", false},
	} {
		loop := &vmstructs.Method{Name: "loop", CodeSize: 6}
		f.bytecode[loop] = []vmstructs.Bytecode{at(0, ifeq, 5), r.second, at(2, vmstructs.OpInvokeStatic, -1),
			at(3, vmstructs.OpIadd, -1), at(4, vmstructs.OpGoto, 0), at(5, vmstructs.OpReturn, -1)}
		f.callees[invokeSite{loop, 2}] = knownInvoke{Invocation: vmstructs.Invocation{Method: leaf, Never: true}, whole: true}
		code := &codeMap{tree: &vmstructs.SiteTable{}}
		way := router{q: questionIn(f, &vmstructs.Blob{Method: loop, Level: levelC2}, code)}
		poll := []vmstructs.Scope{{Method: loop, BCI: 4}}
		if got := way.between(poll, poll, r.space/2, r.space-r.space/2)[0].Method.Name; got != r.want {
			t.Errorf("%s: %s, not %s", r.name, got, r.want)
		}
		if got := slices.Contains(way.ways(loop, vmstructs.PlaceOf(poll)), 2); got != r.needed {
			t.Errorf("%s: the invoke is on a way: %v", r.name, got)
		}
	}
}
