package profile

import (
	"strings"
	"testing"
	"time"
)

func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		s    Summary
		want Quality
		why  []string // the beginnings of the reasons
	}{
		"nothing seen": {Summary{}, Good, nil},
		"no samples":   {Summary{Times: Times{Process: time.Second, NotSampled: time.Second}}, Good, nil},
		"nothing lost": {Summary{Attempted: 10000, Samples: 10000}, Good, nil},
		"a few lost":   {Summary{Attempted: 10000, Samples: 9900, Lost: 100}, Good, nil},
		"some lost":    {Summary{Attempted: 10000, Samples: 9800, Lost: 200}, Fair, []string{"2.0 % of the samples"}},
		"many lost":    {Summary{Attempted: 10000, Samples: 6000, Lost: 4000}, Poor, []string{"40.0 % of the samples"}},
		"all lost":     {Summary{Attempted: 50, Lost: 50}, Poor, []string{"100.0 % of the samples"}},
		"some cut":     {Summary{Attempted: 1000, Samples: 1000, Truncated: 50}, Fair, []string{"5.0 % of the stacks"}},
		"asleep":       {Summary{Attempted: 1000, Samples: 1000, Asleep: 330}, Poor, []string{"33.0 % of the samples"}},
		"short sleeps": {Summary{Attempted: 1000, Samples: 1000, ShortSleeps: 30}, Fair,
			[]string{"3.0 % of the samples are in sleeps"}},
		"leans": {Summary{Attempted: 1000, Samples: 1000, Leans: true}, Fair, []string{"calls that block"}},
		"full":  {Summary{Attempted: 1000, Samples: 1000, Overflow: 30}, Fair, []string{"3.0 % of the samples"}},
		"poor stays poor": {Summary{Attempted: 1000, Samples: 800, Lost: 200, Truncated: 40}, Poor,
			[]string{"20.0 % of the samples", "5.0 % of the stacks"}},
		"time without samples": {Summary{Attempted: 1000, Samples: 1000, Times: Times{Process: 10 * time.Second,
			Sampled:    5 * time.Second,
			NotSampled: 3 * time.Second, Exited: 2 * time.Second}}, Poor, []string{"50.0 % of the CPU time"}},
		"few": {Summary{Attempted: 399, Samples: 399}, Fair,
			[]string{"there are few samples: by chance alone a share may be off by 5 points"}},
		"very few": {Summary{Attempted: 25, Samples: 25}, Poor,
			[]string{"there are few samples: by chance alone a share may be off by 20 points"}},
		"enough": {Summary{Attempted: 400, Samples: 400}, Good, nil},
		"a little of it": {Summary{Attempted: 1000, Samples: 1000, Times: Times{Process: 10 * time.Second,
			Sampled:    9 * time.Second,
			NotSampled: time.Second}}, Good, nil},
	} {
		q, why := c.s.Judge()
		if q != c.want || len(why) != len(c.why) {
			t.Errorf("%s: %s %q, want %s %q", name, q, why, c.want, c.why)
			continue
		}
		for i := range why {
			if !strings.HasPrefix(why[i].Why, c.why[i]) {
				t.Errorf("%s: %q, want %q", name, why[i], c.why[i])
			}
		}
	}
}

// TestCures: each doubt has the cure for its cause and for the engine.
func TestCures(t *testing.T) {
	many := func(s Summary) Summary {
		s.Attempted = 10000
		s.Samples = s.Attempted - s.Lost
		return s
	}
	for name, c := range map[string]struct {
		s    Summary
		want string
	}{
		"few": {Summary{Attempted: 50, Samples: 50}, "-d longer, or -r higher"},
		"behind": {many(Summary{Lost: 900, LostBy: map[string]int64{Stale.String(): 800,
			ThreadGone.String(): 100}}), "-r lower: goprof could not keep up"},
		"threads end": {many(Summary{Lost: 900, LostBy: map[string]int64{ThreadGone.String(): 900}}),
			"--engine perf, which stops no thread"},
		"in mode wall": {many(Summary{Lost: 900, LostBy: map[string]int64{ThreadGone.String(): 900},
			Meta: Meta{Mode: ModeWall}}), "-d longer"},
		"with perf": {many(Summary{Truncated: 900, TruncatedBy: map[string]int64{StackCut.String(): 900},
			Meta: Meta{Engine: EnginePerf}}), "--engine ptrace"},
		"waits by switches, cut": {many(Summary{Truncated: 900, TruncatedBy: map[string]int64{StackCut.String(): 900},
			Meta: Meta{Mode: ModeOffCPU, Engine: EnginePerf}}), "--mode off-cpu: 20 looks a second, with whole stacks"},
		"waits by switches, behind": {many(Summary{Lost: 900, LostBy: map[string]int64{RingFull.String(): 900},
			Meta: Meta{Mode: ModeOffCPU, Engine: EnginePerf}}), "--min longer: goprof could not keep up"},
		"too deep": {many(Summary{Truncated: 900, TruncatedBy: map[string]int64{TooDeep.String(): 900}}),
			"--depth higher"},
		"stops no thread": {many(Summary{Truncated: 900, TruncatedBy: map[string]int64{NotStopped.String(): 900}}),
			"leave out --nonblocking"},
		"stops those that run": {many(Summary{Truncated: 900, TruncatedBy: map[string]int64{NotStopped.String(): 900},
			Pauses: Pauses{Count: 1}}), "--native-once"},
		"nobody knows": {many(Summary{Truncated: 900, TruncatedBy: map[string]int64{BadMethod.String(): 900}}), ""},
		"not seen":     {many(Summary{Times: Times{Process: 10, NotSampled: 3}}), "-d longer, or -r higher"},
		"soon over": {many(Summary{Times: Times{Process: 10, Exited: 3}}),
			"-r higher: threads ended before they were seen"},
		"leans": {many(Summary{Leans: true, LeansCure: "sudo goprof ..."}),
			"sudo goprof ..., or --engine perf"},
		"leans, no cure": {many(Summary{Leans: true}), "--engine perf, which stops no thread"},
	} {
		if c.s.SetQuality(); len(c.s.Cures) != 1 || c.s.Cures[0] != c.want || len(c.s.Doubts) != 1 {
			t.Errorf("%s: %q %q, want %q", name, c.s.Doubts, c.s.Cures, c.want)
		}
	}
}
