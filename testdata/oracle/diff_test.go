//go:build linux

package oracle

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"goprof/output/diff"
	"goprof/output/recording"
	"goprof/profile"
	"goprof/sampler/look"
	"goprof/sampler/session"
	"goprof/testdata/jvmtest"
)

// kept is a recording in memory.
type kept struct {
	samples []profile.Sample
	truth   string // what the program says of itself
}

func (k *kept) Info() recording.Info { return recording.Info{Name: "kept", Timed: true} }

func (k *kept) Each(visit func(*profile.Sample) error) error {
	for i := range k.samples {
		if err := visit(&k.samples[i]); err != nil {
			return err
		}
	}
	return nil
}

// record takes n samples at 1,000 Hz.
func (k *kept) record(t *testing.T, jvm *jvmtest.JVM, s *session.Session, n int) {
	t.Helper()
	jvm.Command("mark")
	sample(t, s, time.Millisecond, n, func(snap *look.Look, st *profile.Stack) {
		stack := *st
		stack.Frames = slices.Clone(st.Frames)
		k.samples = append(k.samples, profile.Sample{At: profile.Instant{Ticks: snap.When}, Thread: profile.Thread{TID: snap.TID},
			Stack: &stack, Count: snap.Samples()})
	})
	k.truth = jvm.Command("truth")[0]
}

// TestDiffPairs records a program, in JVM after JVM: twice as it is, then with one method made slower by 5 % of all CPU
// time, and so that its share grows by 5 points. It counts how often a comparison is wrong, for recordings of one JVM
// and of two. In full:
//
//	GOPROF_DIFF_ROUNDS=20 go test ./testdata/oracle -run TestDiffPairs -v -timeout 1h
func TestDiffPairs(t *testing.T) {
	rounds, samples := envNumber("GOPROF_DIFF_ROUNDS", 0), envNumber("GOPROF_DIFF_SAMPLES", 10_000)
	if rounds == 0 {
		t.Skip("this measures how often a comparison is wrong, which takes rounds: GOPROF_DIFF_ROUNDS=20")
	}
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		var one, two diffCounts
		var last *canary
		for range rounds {
			now := recordCanary(t, jdk, samples)
			one.add(t, "one JVM", now.first, now.second, now.slower, now.points)
			if last != nil {
				two.add(t, "two JVMs", last.first, now.first, now.slower, now.points)
				two.add(t, "two JVMs", now.second, last.second, last.slower, last.points)
			}
			last = now
		}
		t.Logf("%d samples; one JVM: %v; two JVMs: %v", samples, one, two)
		if one.points == 0 {
			t.Error("a method that was made slower is not found")
		}
	})
}

// canary is the recordings of one JVM.
type canary struct{ first, second, slower, points *kept }

func recordCanary(t *testing.T, jdk jvmtest.JDK, samples int) *canary {
	t.Helper()
	jvm := jvmtest.Start(t, jdk, "truth.Canary")
	s := attach(t, jvm.PID)
	record := func() *kept {
		k := &kept{}
		k.record(t, jvm, s, samples)
		t.Logf("truth: %s", k.truth)
		return k
	}
	c := &canary{first: record(), second: record()}
	var truth struct{ Price float64 }
	if err := json.Unmarshal([]byte(c.second.truth), &truth); err != nil {
		t.Fatal(err)
	}
	jvm.Command("slower 5")
	c.slower = record()
	jvm.Command(fmt.Sprintf("slower %f", 100*0.05/(1-truth.Price-0.05))) // then its share is 5 points more
	c.points = record()
	return c
}

// diffCounts is of how many pairs how many were called changed that were not, and of how many the change was found.
type diffCounts struct{ pairs, changed, slower, points int }

func (c diffCounts) String() string {
	return fmt.Sprintf("%d of %d pairs of the same program are called changed; a method made slower by 5 %% of all CPU time is found in %d of %d, one "+
		"whose share grew by 5 points in %d of %d", c.changed, c.pairs, c.slower, c.pairs, c.points, c.pairs)
}

func (c *diffCounts) add(t *testing.T, what string, before, same, slower, points *kept) {
	t.Helper()
	c.pairs++
	c.changed += c.calledChanged(t, what, before, same)
	c.slower += c.found(t, what+", slower", before, slower)
	c.points += c.found(t, what+", 5 points", before, points)
}

func (c *diffCounts) calledChanged(t *testing.T, what string, before, after *kept) int {
	r := compareKept(t, before, after)
	t.Logf("%s: %s (inflation %.2f, %d hypotheses)%s", what, r.Verdict(), r.Inflation, r.Compared, significant(r))
	return min(r.Significant, 1)
}

func (c *diffCounts) found(t *testing.T, what string, before, after *kept) int {
	r := compareKept(t, before, after)
	for _, ch := range r.Changes {
		if ch.Name == "truth.Canary.price" && ch.Of == diff.OfTotal && ch.Significant && ch.Change > 0 {
			t.Logf("%s: found: %+.2f points, noise %.2f", what, 100*ch.Change, 100*ch.Noise)
			return 1
		}
	}
	t.Logf("%s: not found: %s%s", what, r.Verdict(), significant(r))
	return 0
}

func compareKept(t *testing.T, before, after *kept) *diff.Result {
	t.Helper()
	c := diff.New()
	for side, k := range []*kept{before, after} {
		if err := c.AddSource(diff.Side(side), k, diff.Reading{}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := c.Compare(diff.Options{By: "method"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func significant(r *diff.Result) (text string) {
	for _, ch := range r.Changes {
		if ch.Significant {
			text += fmt.Sprintf("\n\t%s %s %.2f%% -> %.2f%%, noise %.2f, p %.4f", ch.Of, ch.Name, 100*ch.Before, 100*ch.After, 100*ch.Noise, ch.P)
		}
	}
	return text
}
