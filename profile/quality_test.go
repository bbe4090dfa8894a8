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
		why  []string // what the reasons begin with
	}{
		"nothing seen": {Summary{}, Good, nil},
		"no samples":   {Summary{Times: Times{Process: time.Second, NotSampled: time.Second}}, Good, nil},
		"nothing lost": {Summary{Attempted: 1000, Samples: 1000}, Good, nil},
		"a few lost":   {Summary{Attempted: 1000, Samples: 990, Lost: 10}, Good, nil},
		"some lost":    {Summary{Attempted: 1000, Samples: 980, Lost: 20}, Fair, []string{"2.0% of the looks"}},
		"many lost":    {Summary{Attempted: 1000, Samples: 600, Lost: 400}, Poor, []string{"40.0% of the looks"}},
		"all lost":     {Summary{Attempted: 5, Lost: 5}, Poor, []string{"100.0% of the looks"}},
		"some cut":     {Summary{Attempted: 100, Samples: 100, Truncated: 5}, Fair, []string{"5.0% of the stacks"}},
		"asleep":       {Summary{Attempted: 100, Samples: 100, Asleep: 33}, Poor, []string{"33.0% of the samples"}},
		"leans":        {Summary{Attempted: 100, Samples: 100, Leans: true}, Fair, []string{"calls that block"}},
		"full":         {Summary{Attempted: 100, Samples: 100, Overflow: 3}, Fair, []string{"3.0% of the samples"}},
		"poor stays poor": {Summary{Attempted: 100, Samples: 80, Lost: 20, Truncated: 4}, Poor,
			[]string{"20.0% of the looks", "5.0% of the stacks"}},
		"time without samples": {Summary{Attempted: 100, Samples: 100, Times: Times{Process: 10 * time.Second,
			Sampled:    5 * time.Second,
			NotSampled: 3 * time.Second, Exited: 2 * time.Second}}, Poor, []string{"50.0% of the CPU time"}},
		"a little of it": {Summary{Attempted: 100, Samples: 100, Times: Times{Process: 10 * time.Second,
			Sampled:    9 * time.Second,
			NotSampled: time.Second}}, Good, nil},
	} {
		q, why := c.s.Judge()
		if q != c.want || len(why) != len(c.why) {
			t.Errorf("%s: %s %q, want %s %q", name, q, why, c.want, c.why)
			continue
		}
		for i := range why {
			if !strings.HasPrefix(why[i], c.why[i]) {
				t.Errorf("%s: %q, want %q", name, why[i], c.why[i])
			}
		}
	}
}
