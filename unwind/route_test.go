package unwind

import (
	"fmt"
	"strings"
	"testing"

	"goprof/vmstructs"
)

// TestRoute: the methods that run between two places, and for how many quarters of an instruction each.
func TestRoute(t *testing.T) {
	w := &Walker{bytecode: map[*vmstructs.Method][]vmstructs.Bytecode{}}
	method := func(name string, ops ...vmstructs.Bytecode) *vmstructs.Method {
		m := &vmstructs.Method{Name: name}
		w.bytecode[m] = ops
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
		way := router{w: w}
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
		if got := (&router{w: w}).between(from, to, done, 13-done)[0].Method.Name; got != want {
			t.Errorf("%d of 13 instructions behind: %s, not %s", done, got, want)
		}
	}
}
