//go:build linux

package oracle

import "testing"

// What the planted steps execute.
const (
	codeOther   = "e00301aa" // mov x0, x1
	codeCall    = "00040094" // bl
	codeReturn  = "c0035fd6" // ret
	codeJump    = "20021fd6" // br x17
	codeSyscall = "010000d4" // svc #0
)

// plantedSlot is where a call leaves its return address.
const plantedSlot = inLinkRegister

// misplace has that address elsewhere.
func misplace(m *moment) { m.regs[30] += 4 }

// TestOpOf: instructions that change frames, as compilers and HotSpot write them (assembled by binutils).
func TestOpOf(t *testing.T) {
	for code, want := range map[uint32]op{
		0x94000400: opCall, 0x97ffffff: opCall, 0xd63f0100: opCall, 0xd73f0a1f: opCall, // bl, bl, blr x8, blraa x16, sp
		0xd65f03c0: opReturn, 0xd65f0bff: opReturn, 0xd65f0fff: opReturn, 0xd65f0260: opReturn, // ret, retaa, retab, ret x19
		// b, br x17, b.ne, cbz x0, tbnz w1
		0x14000010: opJump, 0xd61f0220: opJump, 0x54000041: opJump, 0xb4000040: opJump, 0x37f80041: opJump,
		0xd71f0a1f: opJump, 0xd4000001: opSyscall, // braa x16, sp; svc #0
		0xc85ffc20: opExclusive, 0x885f7c20: opExclusive, 0xc87f0440: opExclusive, // ldaxr x0, ldxr w0, ldxp x0, x1
		0xc800fc41: opOther, 0xf8e00041: opOther, 0xc8a07c41: opOther, // stlxr, ldaddal, cas
		0xd503233f: opOther, 0xa9bf7bfd: opOther, 0xc8dffc20: opOther, 0x48207c82: opOther, // paciasp, stp, ldar, casp
	} {
		if got := opOfWord(code); got != want {
			t.Errorf("%#x is told as %v, not %v", code, got, want)
		}
	}
}

// TestBranchOffset: forwards and back.
func TestBranchOffset(t *testing.T) {
	for code, want := range map[uint32]int64{0x54000061: 12, 0x35ffffc1: -8, 0x54ffffe0: -4} {
		if got := int64(offset(code>>5, 19)); got != want {
			t.Errorf("%#x branches by %d, not %d", code, got, want)
		}
	}
}
