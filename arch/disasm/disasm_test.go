package disasm

import (
	"encoding/hex"
	"runtime"
	"testing"
)

// TestText: what an instruction looks like, and where it leads. TestAnnotate of cmd/goprof compares whole methods with
// objdump.
func TestText(t *testing.T) {
	type row struct {
		code, text string
		to         uint64
		polls      bool
	}
	rows := map[string][]row{
		"amd64": {
			{"e8fbffffff", "call 0x1000", 0x1000, false},
			{"0f8400010000", "jz 0x1106", 0x1106, false},
			{"c5f96f5c0610", "vmovdqa xmm3, xmmword ptr [rsi+rax+0x10]", 0, false},
			{"4d0fafd1", "imul r10, r9", 0, false},
			{"418502", "test dword ptr [r10], eax", 0, true},
			{"85c0", "test eax, eax", 0, false},
			{"06", "", 0, false}, // none in 64 bits
		},
		"arm64": {
			{"01000094", "bl .+0x4", 0x1004, false},
			{"1f0140b9", "ldr wzr, [x8]", 0, true},
			{"4a7d099b", "mul x10, x10, x9", 0, false},
			{"ffffffff", "", 0, false},
		},
	}[runtime.GOARCH]
	for _, r := range rows {
		code, _ := hex.DecodeString(r.code)
		text, to, ok := Text(code, 0x1000, len(code))
		code = append(code, make([]byte, 8)...)
		if text != r.text || to != r.to || ok != (r.text != "") || PollsForSafepoint(code, 0, true) != r.polls ||
			PollsForSafepoint(code, 0, false) {
			t.Errorf("%s: %q, %#x, %v", r.code, text, to, ok)
		}
	}
	returns := map[string]string{"amd64": "493ba7480400000f8700000000", "arm64": "ff6328eb08020054"}[runtime.GOARCH]
	if code, _ := hex.DecodeString(returns); Available && !PollsForSafepoint(code, 0, false) {
		t.Errorf("%s is a poll at a return", returns)
	}
}
