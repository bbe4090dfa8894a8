//go:build linux

package agent

import (
	"testing"
	"testing/synctest"
)

// A target that does not answer holds nobody, and only so many threads.
func TestInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if got, ok := inTime(func() int { return 7 }); got != 7 || !ok {
			t.Errorf("%d, %v", got, ok)
		}
		synctest.Wait()
		asked, silent := 0, make(chan struct{})
		for range mostHanging + 5 {
			if _, ok := inTime(func() int { asked++; <-silent; return 1 }); ok {
				t.Error("an answer of nobody")
			}
		}
		if asked != mostHanging {
			t.Errorf("%d were asked", asked)
		}
		close(silent)
		synctest.Wait()
		if _, ok := inTime(func() int { return 1 }); !ok || hanging.Load() > 1 {
			t.Errorf("%d hang, and nobody does", hanging.Load())
		}
	})
}
