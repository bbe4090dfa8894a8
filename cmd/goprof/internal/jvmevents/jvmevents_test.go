//go:build linux

package jvmevents

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"goprof/output/jfr"
	"goprof/process/maybe"
	"goprof/profile"
	"goprof/triage/vitals"
)

// TestSafepointsBetweenReadings: of safepoints between two readings the number and the sum of their times are true.
// None began before the first reading, and none ends after the second.
func TestSafepointsBetweenReadings(t *testing.T) {
	at := func(ms int64) profile.Instant {
		return profile.Instant{Wall: 1_790_000_000_000_000_000 + ms*1e6, Ticks: 1 + ms*1e6}
	}
	counted := func(n uint64, took time.Duration) (j vitals.JVM) {
		j.Safepoints = vitals.Safepoints{Count: maybe.Known(n), Time: maybe.Known(took), SyncTime: maybe.Known(took / 2)}
		return j
	}
	for _, c := range []struct {
		count uint64
		took  time.Duration
		want  int
	}{
		{5, 30 * time.Millisecond, 2},
		{3, 10 * time.Millisecond, 0}, // none
		{4, 10 * time.Millisecond, 0}, // one has begun, and has no time yet
		{2, 9 * time.Millisecond, 0},  // another JVM's counters
		{3 + maxSafepointsOnce + 1, time.Hour, 0},
	} {
		counts := &Counts{last: counted(3, 10*time.Millisecond), at: at(0)}
		now := counted(c.count, c.took)
		file, err := os.Create(filepath.Join(t.TempDir(), "x.jfr"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		w := jfr.NewWriter(file, jfr.Options{})
		w.SetMeta(profile.Meta{})
		if err := errors.Join(counts.safepoints(w, &now, at(50)), w.Close(at(60))); err != nil {
			t.Fatal(err)
		}
		begun, ended := 0, 0
		info, err := file.Stat()
		if err != nil {
			t.Fatal(err)
		}
		r := jfr.NewReader(file, info.Size(), func(string, bool) bool { return true })
		for {
			e, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			switch e.Name {
			case "jdk.SafepointBegin":
				begun++
			case "jdk.SafepointEnd":
				ended++
			default:
				continue
			}
			if e.At.Wall < at(0).Wall || e.At.Wall > at(50).Wall {
				t.Errorf("%d safepoints: %s at %v", c.count, e.Name, time.Duration(e.At.Wall-at(0).Wall))
			}
		}
		if begun != c.want || ended != c.want {
			t.Errorf("%d safepoints in %v: %d begun, %d ended", c.count, c.took, begun, ended)
		}
	}
}
