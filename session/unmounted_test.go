//go:build linux

package session

import (
	"testing"
	"time"
)

// TestDrawsStandForPlannedTime: a draw stands for the whole planned time since the last one, however long.
func TestDrawsStandForPlannedTime(t *testing.T) {
	u := &unmounted{timer: time.NewTimer(time.Hour), at: 5}
	defer u.timer.Stop()
	u.drawIn(20 * time.Second)
	u.drawIn(time.Minute) // the previous draw has failed
	for passed, want := range map[time.Duration]time.Duration{time.Second: 0, 85 * time.Second: 0,
		93 * time.Second: 3 * time.Second} {
		if got := u.late(5 + int64(passed)); got != want {
			t.Errorf("after %v: %v, not %v", passed, got, want)
		}
	}
}
