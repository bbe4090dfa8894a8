package unwind

import (
	"strings"
	"testing"

	"goprof/vmstructs"
)

// TestCastAt: all that C1 makes of a cast whose class may stand in a list is the cast's.
func TestCastAt(t *testing.T) {
	// test rax, rax; je END; mov rsi, class; mov r11d, [rax+8]; cmp rsi, [r11+0x38]; je END; cmp r11, rsi; call;
	// test ebx, ebx; je; jmp END; END: mov rcx, rax; ret
	const cast = "4885c0 7426 48be0001000000000000 448b5808 493b7338 7412 4939f3 e800000000 85db 0f84>0 eb00 4889c1 c3"
	for _, r := range []struct {
		name, code string
		op         uint8
		from, to   int32 // which instructions are told
	}{
		{"a cast", cast, vmstructs.OpCheckcast, 0, 9},
		{"of an interface's receiver", cast, vmstructs.OpInvokeInterface, 0, 9},
		{"another bytecode", cast, vmstructs.OpGetfield, 0, -1},
		{"a branch to elsewhere", strings.Replace(cast, "7412", "7415", 1), vmstructs.OpCheckcast, 0, -1},
		{"a store in between", strings.Replace(cast, "4939f3", "895910", 1), vmstructs.OpCheckcast, 7, -1},
	} {
		u := newMadeUp(t)
		s := u.scopes(0)[0]
		u.w.bytecode[s.Method] = []vmstructs.Bytecode{{BCI: s.BCI, Op: r.op, Target: -1}}
		u.b.Level = 1
		u.assemble(t, r.code, vmCall, "")
		for n := range int32(13) {
			e := u.w.castAt(u.b, u.m, n)
			want := n >= r.from && n <= r.to
			if (e.kind == atCheck) != want || want && e.scope != u.b.Begin+uint64(u.records[0]) {
				t.Errorf("%s, instruction %d: %+v", r.name, n, e)
			}
		}
		if r.to == 9 && (u.w.notedWith(u.m, 10) != 9 || u.w.notedWith(u.m, 11) != 9 || u.w.notedWith(u.m, 12) != 12) {
			t.Errorf("%s: behind it are %d, %d and %d", r.name, u.w.notedWith(u.m, 10), u.w.notedWith(u.m, 11),
				u.w.notedWith(u.m, 12))
		}
	}
}
