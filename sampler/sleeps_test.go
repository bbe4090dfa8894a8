//go:build linux

package sampler

import (
	"encoding/binary"
	"testing"

	"goprof/process"
)

func TestSleepsSoon(t *testing.T) {
	const now = int64(1_999_999_000_000) // the next second is 1 ms away
	for name, c := range map[string]struct {
		at        int
		sec, nsec uint64
		want      bool
	}{
		"in 20 us":             {40, 1999, 999_020_000, true},
		"in the next second":   {40, 2000, 500_000, true},
		"it is over":           {40, 1999, 998_999_999, false},
		"in a second":          {40, 2000, 999_020_000, false},
		"no time":              {40, 1999, 1_000_000_001, false},
		"far from the top":     {deadlineWithin - 8, 1999, 999_020_000, false},
		"at the end of it":     {deadlineWithin - 16, 1999, 999_020_000, true},
		"another kind of word": {40, 1 << 60, 999_020_000, false},
	} {
		snap := &process.Snapshot{Stack: make([]byte, 2*deadlineWithin)}
		binary.LittleEndian.PutUint64(snap.Stack[c.at:], c.sec)
		binary.LittleEndian.PutUint64(snap.Stack[c.at+8:], c.nsec)
		if got := SleepsSoon(snap, now); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if SleepsSoon(&process.Snapshot{Stack: make([]byte, 12)}, now) {
		t.Error("a stack of a word and a half holds no time")
	}
}
