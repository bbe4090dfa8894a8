package unwind

import (
	"testing"

	"goprof/arch/amd64"
	"goprof/vmstructs"
)

// TestReloadedFor: a load from the stack is for the instruction that takes the value.
func TestReloadedFor(t *testing.T) {
	for _, r := range []struct {
		name, code string
		want       int32
	}{
		{"for a comparison", "448b5c2404 4585db", 1},
		{"for a load of a field", "4c8b542410 ffc1 458b520c", 2},
		{"a load of a field itself", "458b520c 4585d2", notInCode},
		{"a store to the stack", "44895c2404 4585db", notInCode},
		{"an element on the stack", "8b440c04 85c0", notInCode},
		{"a copy between registers", "4489d8 85c0", notInCode},
		{"behind a branch", "448b5c2404 7402 4585db c3", notInCode},
	} {
		m := &codeMap{cpu: amd64.CPU}
		m.begin(unhex(t, r.code), 0, func(func(uint64) bool) {})
		if got := m.reloadedFor(m.place(0)); got != r.want {
			t.Errorf("%s: %d, not %d", r.name, got, r.want)
		}
		if got := m.reloadedFor(notInCode); got != notInCode {
			t.Errorf("no instruction: %d", got)
		}
	}
}

// TestReloadForCheck: what is loaded from the stack for a check belongs to the check. Its record does not count as
// truth if the check cannot have been made for it.
func TestReloadForCheck(t *testing.T) {
	for _, r := range []struct {
		name, code string
		want       bool
	}{
		{"for the check", "448b5c2404 4585db 0f84>0 c3", true},
		{"another register", "448b5c2404 4585d2 0f84>0 c3", false},
		{"for a copy", "448b5c2404 4489d8 4585db 0f84>0 c3", false},
	} {
		u := newMadeUp(t)
		u.assemble(t, r.code, trapCall, u.request(t, vmstructs.TrapNull))
		s := u.w.atReload(u.b, u.m, 0)
		if (s != nil) != r.want || s != nil && s[0] != u.scopes(0)[0] {
			t.Errorf("%s: %+v", r.name, s)
		}
		u.b.Level = 1
		if s := u.w.atReload(u.b, u.m, 0); s != nil {
			t.Errorf("%s: C1 does not do that", r.name)
		}
	}
}
