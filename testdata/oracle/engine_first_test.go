//go:build linux

package oracle

import (
	"context"
	"testing"
	"time"

	"goprof/profile"
	"goprof/sampler/session"
	"goprof/testdata/jvmtest"
)

// TestFirstSightsCount records javac with few samples: each of them meets code that no walk has met yet. None of them
// may be lost because goprof came to it late. Kafka's broker had 13 to 20 % of its samples by perf_event lost as
// stale.
func TestFirstSightsCount(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, engine := range []session.EngineName{session.PtraceEngine, session.PerfEngine} {
			t.Run(string(engine), func(t *testing.T) {
				if engine == session.PerfEngine {
					withPerf(t)
				}
				jvm := jvmtest.Start(t, jdk, "truth.JavacLoop", "--", "0", "200")
				time.Sleep(2 * time.Second) // there is code to meet
				ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
				defer cancel()
				_, sum, err := attach(t, jvm.PID).Record(ctx, session.RecordOptions{Interval: 5 * time.Millisecond, Engine: engine})
				if err != nil {
					t.Fatal(err)
				}
				stale := sum.LostBy[profile.Stale.String()]
				t.Logf("%d samples, %d stale", sum.Attempted, stale)
				if sum.Attempted < 100 || stale*50 > sum.Attempted {
					t.Errorf("%d of %d samples are stale", stale, sum.Attempted)
				}
			})
		}
	})
}
