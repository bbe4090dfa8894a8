package unwind

import (
	"encoding/binary"
	"errors"
	"testing"

	"goprof/arch/amd64"
	"goprof/profile"
)

// codeAt is a target whose memory consists of a few pieces of code.
type codeAt struct {
	noTarget
	at map[uint64][]byte
}

func (c codeAt) Read(addr uint64, p []byte) error {
	for at, code := range c.at {
		if addr >= at && addr+uint64(len(p)) <= at+uint64(len(code)) {
			copy(p, code[addr-at:])
			return nil
		}
	}
	return errors.New("nothing is mapped here")
}

// TestClone: glibc's rules for clone3 end before its system call, and two threads return from that call. The calling
// thread is followed to its caller. The new thread has no caller.
func TestClone(t *testing.T) {
	const pc, ret = 0x401017, 0x402005
	clone3 := []byte{
		0xb8, 0xea, 0xff, 0xff, 0xff, 0x48, 0x85, 0xff, 0x74, 0x2c, 0x48, 0x85, 0xd2, 0x74, 0x27, 0x49, 0x89, 0xc8,
		0xb8, 0xb3, 0x01, 0x00, 0x00, 0x0f, 0x05, // syscall
		0x48, 0x85, 0xc0, 0x7c, 0x18, 0x74, 0x01, 0xc3, // test, jl, je, ret
		0x31, 0xed, 0x48, 0x83, 0xe4, 0xf0, 0x4c, 0x89, 0xc7, 0xff, 0xd2, 0x48, 0x89, 0xc7, 0xb8, 0x3c, 0, 0, 0, 0x0f, 0x05,
		0x48, 0x8b, 0x0d, 0xe3, 0x94, 0x0c, 0x00, 0xf7, 0xd8, 0x64, 0x89, 0x01, 0x48, 0x83, 0xc8, 0xff, 0xc3,
	}
	caller := []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xe8, 0x10, 0xf0, 0xff, 0xff, 0x90}
	for _, c := range []struct {
		name   string
		fn     string
		result uint64
		want   bool
	}{
		{"the thread that called", "__clone3", 0x59d4, true},
		{"a call that failed", "clone", ^uint64(11), true},
		{"the new thread", "__clone3", 0, false},
		{"another function", "work", 0x59d4, false},
	} {
		w := evaluator()
		w.t = codeAt{at: map[uint64][]byte{0x401000: append(clone3, make([]byte, maxAssembly)...), ret - 21: caller}}
		w.cur.pc, w.cur.sp, w.cur.exact = pc+2, w.snap.SP+8, true
		w.cur.regs[amd64.CPU.SP], w.cur.regs[amd64.CPU.SyscallResult] = w.cur.sp, c.result
		binary.LittleEndian.PutUint64(w.snap.Stack[8:], ret)
		got, ok := w.assemblyCaller(&nativeSite{fn: &profile.Func{Name: c.fn, Module: "libc.so.6"}})
		if ok != c.want || ok && (got.pc != ret || got.sp != w.snap.SP+16) {
			t.Errorf("%s: %+v %v", c.name, got, ok)
		}
	}
}
