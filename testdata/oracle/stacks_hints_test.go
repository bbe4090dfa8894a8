//go:build linux

package oracle

import (
	"testing"
	"time"

	"goprof/profile"
	"goprof/sampler/look"
	"goprof/testdata/jvmtest"
)

// TestFirstLookHasTheAnchor: what the pause must copy of a JavaThread is known before the thread is
// looked at for the first time, also when the same session records again.
func TestFirstLookHasTheAnchor(t *testing.T) {
	t.Parallel()
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		s := attach(t, jvmtest.Start(t, jdk, "truth.Intrinsics", "--", "polls").PID)
		threads, err := s.Threads()
		if err != nil {
			t.Fatal(err)
		}
		known := map[int]uint64{}
		for tid, th := range threads {
			known[tid] = th.Hint.Side
		}
		for range 2 {
			looks := 0
			each := func(snap *look.Look, _ *profile.Stack) {
				if side := known[snap.TID]; side != 0 {
					looks++
					if snap.SideAddr != side || len(snap.Side) == 0 {
						t.Errorf("look %d, thread %d: %d bytes at %#x, want %#x", looks, snap.TID, len(snap.Side), snap.SideAddr, side)
					}
				}
			}
			for n := 0; n == 0 || looks == 0 && n < 20; n++ {
				sample(t, s, time.Millisecond, 20, each)
			}
			if looks == 0 {
				t.Error("no known thread ran")
			}
		}
	})
}
