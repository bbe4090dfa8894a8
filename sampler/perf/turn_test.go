//go:build linux

package perf

import (
	"testing"
)

// TestTurnsComeLate: after a turn that came late there is no long sleep for a while, and longer while turns come late.
func TestTurnsComeLate(t *testing.T) {
	var turn ownTurn
	defer turn.close()
	now := int64(1e9)
	if !turn.comesSoon(now) {
		t.Fatal("the first sleep is not long")
	}
	for _, want := range []int64{turnsLate, 2 * turnsLate, 4 * turnsLate, 8 * turnsLate, turnsLateMost, turnsLateMost} {
		turn.judge(now, 60e6)
		if turn.comesSoon(now+want-1) || !turn.comesSoon(now+want) {
			t.Errorf("a late turn forbids long sleeps for %d ns, not %d", turn.until-now, want)
		}
		now += want
	}
	turn.judge(now, lateTurn-1)
	turn.judge(now, lateTurn)
	if turn.pause != turnsLate {
		t.Errorf("after a turn in time it begins with %d", turn.pause)
	}
	if waited, ok := turn.read(); !ok || waited > 1e12 {
		t.Errorf("the kernel's account: %d, %v", waited, ok)
	}
}
