//go:build linux

package visit

import (
	"os"
	"testing"
	"time"

	"goprof/sampler"
	"goprof/testdata/ctest"
	"goprof/testdata/jvmtest"
	"goprof/testdata/sampletest"
)

// TestLoneThreadIsMetAsOftenAsItRuns: the scheduler moves a thread away from the CPU where goprof works. A thread
// that runs all the time still has one sample in each interval of CPU time, if there is another CPU to move it to.
func TestLoneThreadIsMetAsOftenAsItRuns(t *testing.T) {
	length := 1500 * time.Millisecond
	if os.Getenv("GOPROF_PROVE") != "" || sampletest.MayMiss() {
		length = 4 * time.Second
	}
	for _, interval := range jvmtest.Drawn(t, 1, []time.Duration{time.Millisecond, 10 * time.Millisecond}) {
		interval = sampletest.Interval(interval)
		p := ctest.Run(t, ctest.Spin)
		p.Number(t)
		before := ctest.Ran(t, p.PID, p.PID)
		got := session(t, p.PID, sampler.Config{Interval: interval}, 64,
			sampletest.UntilSamples(int64(length/interval)))
		owed := (ctest.Ran(t, p.PID, p.PID) - before) / int64(interval)
		t.Logf("%v: %d samples of %d owed, %d skipped of %d, pauses p50 %v p99 %v max %v, goprof %.1f %%",
			interval, got.Attempted, owed, got.Skipped, got.Ticks,
			got.Pauses.Quantile(.5), got.Pauses.Quantile(.99), got.Pauses.Max(),
			100*got.CPU.Seconds()/got.Wall.Seconds())
		sampletest.NeedTicks(t, &got.Stats)
		least := held(owed, &got.Stats)*4/5 - sampletest.Chance(owed)
		if sampletest.MayMiss() { // a visit takes milliseconds there, and the thread is moved before goprof asks for it
			least = 1
		}
		if got.Attempted < least || got.Attempted > owed+sampletest.Chance(owed)+owed/20 {
			t.Errorf("%v: %d samples of %d owed", interval, got.Attempted, owed)
		}
	}
}
