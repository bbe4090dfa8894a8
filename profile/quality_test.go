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
		"buffers were read": {allocSummary(Contents{Buffers: 100, Apart: 0.04, InStep: true}), Good, nil},
		"apart by chance":   {allocSummary(Contents{Buffers: 100, Apart: 0.2}), Good, nil},
		"in step": {allocSummary(Contents{Buffers: 100, Apart: 0.7, InStep: true}), Fair,
			[]string{"the program moves in step with its buffers, whose ends alone would be 70 % off"}},
		"half unread": {allocSummary(Contents{Buffers: 10, Unread: map[string]int64{"a": 9, "b": 2}}), Fair,
			[]string{"52 % of the buffers that were to be read could not be: a"}},
		"nothing read": {allocSummary(Contents{Unread: map[string]int64{"a": 1}}), Fair,
			[]string{"shares rest on where buffers end, and a program that repeats itself may walk in step with them: no " +
				"buffer could be read: a"}},
		"nothing to be read": {allocSummary(Contents{Why: "an agent"}), Fair, []string{"shares rest on where buffers end"}},
		"guesses in many methods": {Summary{Attempted: 1000, Samples: 1000, LeafGuessed: 400, LeafGuessedMost: 90}, Good,
			nil},
		"guesses in one method": {Summary{Attempted: 1000, Samples: 1000, LeafGuessed: 150, LeafGuessedMost: 120}, Fair,
			[]string{"12.0 % of the samples stand in one compiled method"}},
		"two thirds are guesses": {Summary{Attempted: 1000, Samples: 1000, LeafGuessed: 660, LeafGuessedMost: 430}, Poor,
			[]string{"43.0 % of the samples stand in one compiled method"}},
		"enough": {Summary{Attempted: 400, Samples: 400}, Good, nil},
		"few looks, which count often": {Summary{Attempted: 4000, Samples: 4000, Effective: 100}, Fair,
			[]string{"the samples are worth as much as 100 that count once each: by chance alone a share may be off by 10 " +
				"points"}},
		"lost, and made up for": {Summary{Attempted: 1300, Samples: 1100, MadeUp: 100, Lost: 200}, Poor,
			[]string{"16.7 % of the samples are lost"}},
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

// allocSummary returns the account of a recording of allocations.
func allocSummary(c Contents) Summary { return Summary{Attempted: 1000, Samples: 1000, Contents: &c} }

// TestWhyNotSampled: CPU time without a sample has a cause.
func TestWhyNotSampled(t *testing.T) {
	const s = time.Second
	for want, c := range map[string]Summary{
		"threads ended before they were seen":             {Times: Times{NotSampled: 2 * s, Exited: 3 * s}},
		"goprof was stopped, or had no CPU, for seconds":  {Times: Times{NotSampled: 5 * s, Unwatched: 4 * s}},
		"threads used less each than a sample stands for": {Times: Times{NotSampled: 5 * s, Small: 4 * s}},
		"the samples that were due for it are lost":       {Lost: 4000, Times: Times{NotSampled: 5 * s}},
		"threads had used it since their last sample":     {Lost: 1000, MadeUp: 900, Times: Times{NotSampled: 5 * s}},
	} {
		c.Attempted, c.Samples, c.Times.Process = 10000, 6000, 10*s
		c.Meta.Interval = time.Millisecond
		_, doubts := c.Judge()
		if last := doubts[len(doubts)-1].Why; !strings.HasSuffix(last, " % of the CPU time has no sample: "+want) {
			t.Errorf("%q, and not %q", last, want)
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
		"behind, without priority": {many(Summary{Lost: 900, LostBy: map[string]int64{Stale.String(): 900},
			LateWhy: "it lacks CAP_SYS_NICE", LateCure: "sudo goprof ..."}), "sudo goprof ...: it lacks CAP_SYS_NICE"},
		"no CPU": {many(Summary{Times: Times{Process: 10, NotSampled: 3, Unwatched: 3}}), "fewer programs beside the JVM"},
		"threads end": {many(Summary{Lost: 900, LostBy: map[string]int64{ThreadGone.String(): 900}}),
			"--engine perf, which stops no thread"},
		"the process ends": {many(Summary{Lost: 900, LostBy: map[string]int64{ProcessGone.String(): 900}}), ""},
		"in mode wall": {many(Summary{Lost: 900, LostBy: map[string]int64{ThreadGone.String(): 900},
			Meta: Meta{Mode: ModeWall}}), "-d longer"},
		"with perf": {many(Summary{Truncated: 900, TruncatedBy: map[string]int64{StackCut.String(): 900},
			Meta: Meta{Engine: EnginePerf}}), "--engine ptrace"},
		"waits by switches, cut": {many(Summary{Truncated: 900, TruncatedBy: map[string]int64{StackCut.String(): 900},
			Meta: Meta{Mode: ModeOffCPU, Engine: EnginePerf}}), "--engine ptrace: 20 looks a second, with whole stacks"},
		"waits by switches, behind": {many(Summary{Lost: 900, LostBy: map[string]int64{RingFull.String(): 900},
			Meta: Meta{Mode: ModeOffCPU, Engine: EnginePerf}}), "--min longer: goprof could not keep up"},
		"too deep": {many(Summary{Truncated: 900, TruncatedBy: map[string]int64{TooDeep.String(): 900}}),
			"--depth higher"},
		"stops no thread": {many(Summary{Truncated: 900, TruncatedBy: map[string]int64{NotStopped.String(): 900},
			Looks: &Looks{NonBlocking: true}}), "leave out --nonblocking"},
		"stops those that run": {many(Summary{Truncated: 900, TruncatedBy: map[string]int64{NotStopped.String(): 900},
			Pauses: Pauses{Count: 1}}), "--native-once"},
		"nobody knows": {many(Summary{Truncated: 900, TruncatedBy: map[string]int64{BadMethod.String(): 900}}), ""},
		"not seen":     {many(Summary{Times: Times{Process: 10, NotSampled: 3}}), "-d longer, or -r higher"},
		"soon over": {many(Summary{Times: Times{Process: 10, Exited: 3}}),
			"-r higher"},
		"leans": {many(Summary{Leans: true, LeansCure: "sudo goprof ..."}),
			"sudo goprof ..., or --engine perf"},
		"leans, no cure": {many(Summary{Leans: true}), "--engine perf, which stops no thread"},
	} {
		if c.s.SetQuality(); len(c.s.Cures) != 1 || c.s.Cures[0] != c.want || len(c.s.Doubts) != 1 {
			t.Errorf("%s: %q %q, want %q", name, c.s.Doubts, c.s.Cures, c.want)
		}
	}
}

// TestHoldsAreJudged: a hold over the bound makes an account poor, whatever its shares are. So do looks that were left
// out, if they are many, or if no looks remain. The reason and the cure are those of the hindrance.
func TestHoldsAreJudged(t *testing.T) {
	for _, c := range []struct {
		attempted, leftOut, over int64
		want                     Quality
		why                      string
	}{
		{5000, 0, 1, Poor, "threads were held for longer than 100ms, the longest for 1.663s, 1 in all: because"},
		{5000, 100, 0, Good, ""},
		{5000, 1000, 0, Fair, "17 % of the looks"},
		{5000, 5000, 0, Poor, "50 % of the looks"},
		{0, 1, 0, Poor, "100 % of the looks"},
	} {
		s := Summary{Attempted: c.attempted, Samples: c.attempted, Whole: c.attempted,
			Pauses:   Pauses{Max: 1663 * time.Millisecond, Bound: 100 * time.Millisecond},
			Hindered: &Hindered{LeftOut: c.leftOut, Over: c.over, Why: "because", Cure: "do this"}}
		q, doubts := s.Judge()
		if q != c.want || (c.why == "") != (len(doubts) == 0) {
			t.Errorf("%+v: %s %v", c, q, doubts)
		} else if c.why != "" && (!strings.HasPrefix(doubts[0].Why, c.why) || doubts[0].Cure != "do this" ||
			!strings.HasSuffix(doubts[0].Why, ": because")) {
			t.Errorf("%+v: %v", c, doubts)
		}
	}
	cut := Summary{Attempted: 500, Samples: 500, Truncated: 400, TruncatedBy: map[string]int64{NotStopped.String(): 400},
		Hindered: &Hindered{LeftOut: 1, Cure: "do this"}}
	if _, doubts := cut.Judge(); len(doubts) != 1 || doubts[0].Cure != "do this" {
		t.Errorf("%v: --nonblocking was not given", doubts)
	}
}
