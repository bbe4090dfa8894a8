//go:build linux

package perf

import (
	"sync/atomic"
	"testing"
	"time"

	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/testdata/sampletest"
)

// TestPerfOfATargetThatForks: children have no samples.
func TestPerfOfATargetThatForks(t *testing.T) {
	needPerf(t)
	sampletest.Forks(t, func(pid int, end func(*atomic.Int64)) sampler.Stats {
		return perfSession(t, pid, sampler.Config{Interval: 500 * time.Microsecond}, func(s *look.Look) {
			if s.TID != pid {
				t.Errorf("a sample of %d, a child of %d", s.TID, pid)
			}
		}, func(_ *Engine, seen *atomic.Int64) { end(seen) }).Stats
	})
}
