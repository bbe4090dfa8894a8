//go:build linux

package oracle

import (
	"testing"
	"time"

	"goprof/profile"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// TestFirstSightsCount records javac at 100 Hz while the JVM still compiles it: hardly a stack is made of code only
// that goprof has met before. Stacks are walked some 50 ms late, and count where their code was noted in time. Kafka's
// broker had 13 to 20 % of its samples by perf_event lost as stale.
func TestFirstSightsCount(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, engine := range jvmtest.Drawn(t, 1, []session.EngineName{session.PtraceEngine, session.PerfEngine}) {
			t.Run(string(engine), func(t *testing.T) {
				if engine == session.PerfEngine {
					withPerf(t)
				}
				again(t, func(t testing.TB) {
					jvm := jvmtest.Start(fact(t), jdk, "truth.JavacLoop", "--", "0", javacClasses)
					defer jvm.Kill() // TestJavacIsWhole has it end, and verify what it has done
					opt := session.RecordOptions{Interval: 10 * time.Millisecond, Engine: engine}
					_, sum, err := attach(t, jvm.PID).Record(untilEnough(t, &opt, 2*time.Second, 200), opt)
					stale := sum.LostBy[profile.Stale.String()]
					t.Logf("%d samples, %d stale, all lost %v", sum.Attempted, stale, sum.LostBy)
					if err != nil || stale*20 > sum.Attempted {
						t.Errorf("too many are stale (%v)", err)
					}
				})
			})
		}
	})
}
