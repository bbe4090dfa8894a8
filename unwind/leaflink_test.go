package unwind

import (
	"encoding/binary"
	"errors"
	"testing"

	"goprof/arch"
	"goprof/arch/arm64"
	"goprof/process"
	"goprof/profile"
)

// waitingLibc is an arm64 program that waits in a system call. wait calls cancellable, cancellable calls the leaf, and
// the leaf has the svc.
type waitingLibc struct {
	process.Target
	memory map[uint64][]byte
	codes  []process.Code // by address; Offset is the beginning of each
	ends   []uint64
}

func (waitingLibc) CPU() *arch.CPU     { return arm64.CPU }
func (waitingLibc) Generation() uint64 { return 1 }

func (l waitingLibc) Read(addr uint64, p []byte) error {
	for at, b := range l.memory {
		if from := addr - at; addr >= at && from < uint64(len(b)) && len(p) <= len(b[from:]) {
			copy(p, b[from:])
			return nil
		}
	}
	return errors.New("nothing is mapped here")
}

func (l waitingLibc) Code(pc uint64, exact bool) (process.Code, bool) {
	if !exact {
		pc--
	}
	for i, c := range l.codes {
		if pc >= c.Offset && pc < l.ends[i] {
			return c, true
		}
	}
	return process.Code{}, false
}

// TestLinkOfLeaf: only a register has the leaf's return address. A walk without this register still finds it.
func TestLinkOfLeaf(t *testing.T) {
	const (
		sp, x29, x30       = 31, 29, 30
		leaf, cancel, wait = 0x10000, 0x10100, 0x10400
	)
	bl := func(at, to uint64) uint32 { return 0x94000000 | uint32((to-at)/4)&0x3ffffff }
	framed := func(size int32) *process.Row {
		return &process.Row{CFA: process.Rule{Kind: process.RuleRegister, Reg: sp, Off: size}, RA: x30,
			Saved: []process.SavedReg{
				{Reg: x29, Rule: process.Rule{Kind: process.RuleOffset, Off: -size}},
				{Reg: x30, Rule: process.Rule{Kind: process.RuleOffset, Off: 8 - size}}}}
	}
	code := make([]byte, 0x2000)
	put := func(at uint64, op uint32) { binary.LittleEndian.PutUint32(code[at-leaf:], op) }
	for at := uint64(leaf); at < leaf+0x2000; at += 4 {
		put(at, 0xd503201f) // nop
	}
	put(leaf+16, 0xd4000001) // svc
	put(cancel, 0xa9bd7bfd)  // stp x29, x30, [sp, #-48]!
	put(cancel+0x20, bl(cancel+0x20, wait))
	put(cancel+0x40, bl(cancel+0x40, leaf))
	put(wait+0x80, bl(wait+0x80, cancel))
	libc := waitingLibc{
		memory: map[uint64][]byte{leaf: code},
		codes: []process.Code{
			{Image: "libc.so.6", Offset: leaf, Row: &process.Row{CFA: process.Rule{Kind: process.RuleRegister, Reg: sp},
				RA: x30}},
			{Image: "libc.so.6", Offset: cancel, Row: framed(48)},
			{Image: "libc.so.6", Offset: wait, Row: &process.Row{CFA: process.Rule{Kind: process.RuleRegister, Reg: sp, Off: 32},
				RA:    x30,
				Saved: []process.SavedReg{{Reg: x30, Rule: process.Rule{Kind: process.RuleUndefined}}}}},
		},
		ends: []uint64{cancel, wait, leaf + 0x2000},
	}
	stack := func(ret uint64) *process.Snapshot {
		snap := &process.Snapshot{SP: 0x7000, Stack: make([]byte, 128)}
		snap.Regs[sp], snap.Regs[arm64.CPU.PC] = snap.SP, leaf+20
		binary.LittleEndian.PutUint64(snap.Stack, 0x7030)
		binary.LittleEndian.PutUint64(snap.Stack[8:], ret)
		return snap
	}
	var out profile.Stack
	New(libc, nil).WalkUnstopped(stack(wait+0x84), &out)
	if len(out.Frames) != 3 || out.Truncated != profile.Whole || out.Frames[1].PC != cancel+0x44 ||
		out.Frames[2].PC != wait+0x84 {
		t.Errorf("%v %+v", out.Truncated, out.Frames)
	}
	// A word on the stack alone is no proof.
	for name, change := range map[string]func(*waitingLibc) uint64{
		"an address behind no call": func(*waitingLibc) uint64 { return wait + 0x90 },
		"a call of who does not call the leaf": func(*waitingLibc) uint64 {
			put(wait+0x90,
				bl(wait+0x90, wait+0x200))
			return wait + 0x94
		},
		"a frame record somewhere else": func(l *waitingLibc) uint64 {
			l.codes[1].Row = framed(64)
			l.codes[1].Row.Saved = nil
			return wait + 0x84
		},
	} {
		l := libc
		l.codes = append([]process.Code(nil), libc.codes...)
		ret := change(&l)
		out = profile.Stack{}
		New(l, nil).WalkUnstopped(stack(ret), &out)
		if out.Truncated != profile.NotStopped || len(out.Frames) != 2 || UnstoppedGap(&out) != 1 {
			t.Errorf("%s: %v %+v", name, out.Truncated, out.Frames)
		}
	}
}
