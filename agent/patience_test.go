//go:build linux

package agent

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// A target that does not answer blocks no caller, and a bounded number of threads.
func TestInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if got, ok := inTime(func() int { return 7 }); got != 7 || !ok {
			t.Errorf("%d, %v", got, ok)
		}
		synctest.Wait()
		var asked atomic.Int32
		silent := make(chan struct{})
		for range mostHanging + 5 {
			if _, ok := inTime(func() int { asked.Add(1); <-silent; return 1 }); ok {
				t.Error("an answer of nobody")
			}
		}
		if n := asked.Load(); n != mostHanging {
			t.Errorf("%d were asked", n)
		}
		close(silent)
		synctest.Wait()
		if _, ok := inTime(func() int { return 1 }); !ok || hanging.Load() > 1 {
			t.Errorf("%d hang, and nobody does", hanging.Load())
		}
	})
}

// What a question uses is given back once, and not while the question may still use it: after an answer that came too
// late, and where the question was not asked. An answer in time gives nothing back.
func TestInTimeGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var back atomic.Int32
		silent := make(chan struct{})
		ask := func() int { <-silent; return 1 }
		late := func(int) { back.Add(1) }
		for range mostHanging + 5 {
			inTimeOr(ask, late)
		}
		if n := back.Load(); n != 5 {
			t.Errorf("%d were given back, and 5 were not asked", n)
		}
		close(silent)
		synctest.Wait()
		if n := back.Load(); n != mostHanging+5 {
			t.Errorf("%d were given back, not %d", n, mostHanging+5)
		}
		if inTimeOr(func() int { return 1 }, late); back.Load() != mostHanging+5 {
			t.Error("an answer in time was given back, too")
		}
	})
}
