//go:build linux

package oracle

import (
	"encoding/hex"
	"testing"
)

// What the planted steps execute.
const (
	codeOther   = "4889c3"       // mov rbx, rax
	codeCall    = "e8fb0f0000"   // call
	codeReturn  = "c3"           // ret
	codeJump    = "ff2500000000" // jmp [rip]
	codeSyscall = "0f05"         // syscall
)

// plantedSlot is where a call leaves its return address.
const plantedSlot = plantedSP - pushed

// misplace has that address elsewhere.
func misplace(m *moment) { m.frames[1].slot += 8 }

// TestOpOf: instructions that change frames, as compilers and HotSpot write them.
func TestOpOf(t *testing.T) {
	for code, want := range map[string]op{
		"e800000000": opCall, "ffd0": opCall, "41ff5210": opCall, "ff542408": opCall, "67e800000000": opOther,
		"c3": opReturn, "f3c3": opReturn, "c20800": opReturn,
		"ffe0": opJump, "41ff24da": opJump, "3effe0": opJump, "eb10": opJump, "0f8510000000": opJump, "7510": opJump,
		"f2e900000000": opJump,
		"0f05":         opSyscall, "9c": opPushFlags, "9d": opPopFlags, "669d": opPopFlags,
		"55": opOther, "ff3424": opOther, "48ffc0": opOther, "0faf": opOther, "c9": opOther,
	} {
		raw, err := hex.DecodeString(code + "9090")
		if err != nil {
			t.Fatal(err)
		}
		if got := opOf(raw); got != want {
			t.Errorf("%s is told as %v, not %v", code, got, want)
		}
	}
}
