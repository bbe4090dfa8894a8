package unwind

import (
	"errors"
	"testing"

	"goprof/arch"
	"goprof/arch/arm64"
	"goprof/process"
)

// vdsoTarget is an arm64 process that only has the code to which handlers return.
type vdsoTarget struct{ process.Target }

const sigreturnAt = 0x8000

func (vdsoTarget) CPU() *arch.CPU { return arm64.CPU }

func (vdsoTarget) Read(addr uint64, p []byte) error {
	code := append([]byte{0x1f, 0x20, 0x03, 0xd5}, arm64.CPU.Sigreturn...) // a nop comes before it, as in the vdso
	from := addr - (sigreturnAt - 4)
	if from > uint64(len(code)) || copy(p, code[from:]) < len(p) {
		return errors.New("nothing is there")
	}
	return nil
}

// TestIsSigreturn: handlers return to the beginning of sigreturn. A stopped thread is at its system call.
func TestIsSigreturn(t *testing.T) {
	signal, plain := &process.Row{Signal: true}, &process.Row{}
	for _, c := range []struct {
		name  string
		pc    uint64
		exact bool
		row   *process.Row
		want  bool
	}{
		{"a handler returns there", sigreturnAt, false, signal, true},
		{"no rules", sigreturnAt, false, nil, true},
		{"a thread is there", sigreturnAt, true, signal, true},
		{"a thread is at the system call", sigreturnAt + 4, true, nil, true},
		{"nobody returns to the system call", sigreturnAt + 4, false, signal, false},
		{"rules of something else", sigreturnAt + 4, true, plain, false},
		{"before it", sigreturnAt - 4, true, signal, false},
		{"behind it", sigreturnAt + 8, true, signal, false},
	} {
		if got := New(vdsoTarget{}, nil).isSigreturn(c.pc, c.exact, c.row); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if New(noTarget{}, nil).isSigreturn(sigreturnAt, true, signal) {
		t.Error("on amd64 unwind rules tell")
	}
}
