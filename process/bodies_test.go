package process

import (
	"encoding/hex"
	"testing"

	"goprof/arch"
	"goprof/arch/amd64"
	"goprof/arch/arm64"
)

// TestBodies: a function ends after a return or a jump, unless a branch leads further.
func TestBodies(t *testing.T) {
	for _, r := range []struct {
		name string
		cpu  *arch.CPU
		code string
		want uint64
	}{
		{"a return", amd64.CPU, "31c0c3" + "0f05c3", 3},
		{"a branch over it", amd64.CPU, "85ff7401c3" + "31c0c3" + "0f05c3", 8},
		{"a jump back behind it", amd64.CPU, "85ff7401c3" + "90ebfd" + "0f05c3", 8},
		{"a jump to another function", amd64.CPU, "31c0e900100000" + "0f05c3", 7},
		{"a call", amd64.CPU, "e800100000c3" + "0f05c3", 6},
		{"no end in sight", amd64.CPU, "31c031c0", 4},
		{"no code", amd64.CPU, "", 0},
		{"a return", arm64.CPU, "000080d2c0035fd6" + "010000d4c0035fd6", 8},
		{"a branch over it", arm64.CPU, "40000054c0035fd6" + "000080d2c0035fd6" + "010000d4", 16},
	} {
		code, err := hex.DecodeString(r.code)
		if err != nil {
			t.Fatal(err)
		}
		if got := bodyOf(r.cpu, code); got != r.want {
			t.Errorf("%s, %s: %d bytes, not %d", r.cpu.Name, r.name, got, r.want)
		}
	}
}
