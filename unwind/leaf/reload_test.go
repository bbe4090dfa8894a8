package leaf

import (
	"testing"

	"goprof/arch"
	"goprof/arch/amd64"
	"goprof/arch/arm64"
	"goprof/vmstructs"
)

// TestReloadedFor: a load from the stack belongs to the instruction that takes the value.
func TestReloadedFor(t *testing.T) {
	for _, r := range []struct {
		name string
		cpu  *arch.CPU
		code string
		want int32
	}{
		{"for a comparison", amd64.CPU, "448b5c2404 4585db", 1},
		{"for a load of a field", amd64.CPU, "4c8b542410 ffc1 458b520c", 2},
		{"a load of a field itself", amd64.CPU, "458b520c 4585d2", notInCode},
		{"a store to the stack", amd64.CPU, "44895c2404 4585db", notInCode},
		{"an element on the stack", amd64.CPU, "8b440c04 85c0", notInCode},
		{"a copy between registers", amd64.CPU, "4489d8 85c0", notInCode},
		{"behind a branch", amd64.CPU, "448b5c2404 7402 4585db c3", notInCode},
		// mov w13, 0xd0000; movk w13, 0x9128; cmp w11, w13
		{"a class for a comparison", arm64.CPU, "ad01a052 0d259272 7f010d6b", 2},
		{"its lower half", arm64.CPU, "0d259272 7f010d6b", 1},
		{"a number, behind another instruction", arm64.CPU, "4d018052 4b0540b9 7f010d6b", 2},
		{"for another register", arm64.CPU, "4d018052 7f010c6b c0035fd6", notInCode},
		{"x86's", amd64.CPU, "41ba8c1a0300 4539d3", notInCode}, // mov r10d, 0x31a8c; cmp r11d, r10d
		{"a sum", arm64.CPU, "4d050011 7f010d6b", notInCode},
	} {
		m := &codeMap{cpu: r.cpu}
		m.begin(unhex(t, r.code), 0, func(func(uint64) bool) {})
		if got := m.reloadedFor(m.place(0)); got != r.want {
			t.Errorf("%s: %d, not %d", r.name, got, r.want)
		}
		if got := m.reloadedFor(notInCode); got != notInCode {
			t.Errorf("no instruction: %d", got)
		}
	}
}

// TestReloadForCheck: a load from the stack for a check belongs to the check. Its record does not count as truth if C2
// cannot have made the check for it.
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
		s := u.question().at(0).reload().scopes
		if (s != nil) != r.want || s != nil && s[0] != u.scopes(0)[0] {
			t.Errorf("%s: %+v", r.name, s)
		}
	}
}
