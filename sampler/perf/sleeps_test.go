//go:build linux

package perf

import (
	"encoding/binary"
	"testing"

	"goprof/arch/amd64"
	"goprof/process"
)

func TestSleepsShortly(t *testing.T) {
	const now, sp, size = int64(1_999_999_000_000), 0x7f0000001000, 512 // the next second is 1 ms away
	cpu := amd64.CPU
	for name, c := range map[string]struct {
		at        uint64
		sec, nsec uint64
		want      bool
	}{
		"in 20 us":             {sp + 40, 1999, 999_020_000, true},
		"in the next second":   {sp + 40, 2000, 500_000, true},
		"it was over just now": {sp + 40, 1999, 998_900_000, true},
		"it is long over":      {sp + 40, 1998, 998_900_000, false},
		"in a second":          {sp + 40, 2000, 999_020_000, false},
		"no time":              {sp + 40, 1999, 1_000_000_001, false},
		"at the stack's end":   {sp + size - 16, 1999, 999_020_000, true},
		"half in the stack":    {sp + size - 8, 1999, 999_020_000, false},
		"below the stack":      {sp - 8, 1999, 999_020_000, false},
		"another kind of word": {sp + 40, 1 << 60, 999_020_000, false},
	} {
		snap := &process.Snapshot{SP: sp, Stack: make([]byte, size+16)}
		snap.Regs[cpu.FourthArg] = c.at
		if at := c.at - sp; at < size {
			binary.LittleEndian.PutUint64(snap.Stack[at:], c.sec)
			binary.LittleEndian.PutUint64(snap.Stack[at+8:], c.nsec)
		}
		snap.Stack = snap.Stack[:size]
		if got := SleepsShortly(cpu, snap, now); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if snap.Unknown = 1 << cpu.FourthArg; SleepsShortly(cpu, snap, now) {
			t.Errorf("%s: nobody knows the register", name)
		}
	}
}
