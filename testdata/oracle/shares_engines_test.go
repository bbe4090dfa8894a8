//go:build linux

package oracle

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// TestEngines compares both engines with the truth, in turns, beside so many busy threads of another program, for so
// many rounds of so many seconds at 1,000 Hz. docs/decisions/0024 has its table:
//
//	GOPROF_ENGINES="40 3 8" go test ./testdata/oracle -run '^TestEngines$' -v
func TestEngines(t *testing.T) {
	var beside, rounds, seconds int
	if n, _ := fmt.Sscan(os.Getenv("GOPROF_ENGINES"), &beside, &rounds, &seconds); n != 3 {
		t.Skip("it measures, and judges nothing: see GOPROF_ENGINES")
	}
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Shares", "--", "2")
		s := attach(t, jvm.PID)
		time.Sleep(2 * time.Second) // most is compiled by then
		if beside > 0 {
			runAlong(jvm.PID)
			overload(t, beside, time.Duration(2*rounds*(seconds+5)+10)*time.Second)
		}
		for range rounds {
			for _, engine := range []session.EngineName{session.PtraceEngine, session.PerfEngine} {
				engineRow(t, jvm, s, engine, beside, time.Duration(seconds)*time.Second)
			}
		}
	})
}

// engineRow records once, and logs what came of it.
func engineRow(t *testing.T, jvm *jvmtest.JVM, s *session.Session, engine session.EngineName, beside int,
	d time.Duration) {
	t.Helper()
	jvm.Command("mark")
	p, sum, err := s.Record(context.Background(), session.RecordOptions{Duration: d, Interval: time.Millisecond,
		Threads: true, Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	truth, seen := trueShares(t, jvm), newShareCount()
	p.Each(func(frames []profile.Frame, n int64) {
		if !strings.HasPrefix(frames[0].Func.Name, "[shares-") {
			return
		}
		part := unknownPart
		for _, f := range frames {
			if bucket, ok := strings.CutPrefix(f.Func.Name, "truth.Shares.bucket"); ok {
				part = "bucket" + bucket
				break
			}
			if f.Func.Name == "truth.Shares.work" {
				part = "other"
			}
		}
		seen.samples += int(n)
		seen.by[part] += int(n)
	})
	worst := 0.0
	for part, share := range truth {
		worst = max(worst, math.Abs(float64(seen.by[part])/float64(seen.samples)-share))
	}
	percent := func(n, of int64) float64 { return 100 * float64(n) / float64(max(of, 1)) }
	t.Logf("%-6s beside %2d: %5d samples, worth %5d; off by %.4f (a perfect sampler %.4f), one part by %.4f; "+
		"lost %.1f %%, cut %.1f %%, without a sample %.1f %%; longest hold %v, held %.2f %%; %.0f us of CPU each; %s",
		engine, beside, sum.Samples, sum.Worth(), seen.distance(truth), perfectDistance(truth, int(sum.Worth())), worst,
		percent(sum.Lost, sum.Attempted-sum.MadeUp), percent(sum.Truncated, sum.Samples),
		percent(int64(sum.Times.NotSampled+sum.Times.Exited), int64(sum.Times.Process)),
		sum.Pauses.Max, percent(int64(sum.Pauses.Total), int64(sum.Times.Process)),
		float64(sum.OwnCPU.Microseconds())/float64(max(sum.Samples, 1)), sum.Quality)
}
