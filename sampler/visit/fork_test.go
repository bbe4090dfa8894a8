//go:build linux

package visit

import (
	"sync/atomic"
	"testing"
	"time"

	"goprof/sampler"
	"goprof/testdata/sampletest"
)

// TestTargetThatForks: goprof leaves the children of its target alone. It does not trace, sample or disturb them,
// and their parent gets all of them back. The parent of a vfork cannot stop until its child has gone on. goprof
// makes it wait no longer than that.
func TestTargetThatForks(t *testing.T) {
	t.Run("ptrace", func(t *testing.T) {
		sampletest.Forks(t, func(pid int, end func(*atomic.Int64)) sampler.Stats {
			got := session(t, pid, sampler.Config{Interval: 500 * time.Microsecond}, 16, end)
			for tid, n := range got.ByTID {
				if tid != pid {
					t.Errorf("%d samples of %d, a child of %d", n, tid, pid)
				}
			}
			if got.Err != nil {
				t.Error(got.Err)
			}
			return got.Stats
		})
	})
}
