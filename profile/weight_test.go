package profile

import (
	"encoding/json"
	"testing"
	"time"
)

func TestWeights(t *testing.T) {
	p := New()
	s := stack(Whole, "main", "work")
	p.AddTimed("", s, 1, 10*time.Millisecond)
	p.AddTimed("[t tid=1]", s, 2, 5*time.Millisecond)
	p.AddTimed("", stack(Whole, "main", "idle"), 1, 0)
	p.SetTime(NotSampled, 7)
	p.SetTime(NotSampled, 3) // time that is not sampled yet can be sampled later
	p.SetTime(ExitedThreads, 0)
	for weight, want := range map[Weight]map[string]int64{
		Samples: {"work": 3, "idle": 1},
		CPUTime: {"work": int64(15 * time.Millisecond), NotSampled: 3},
	} {
		p.Meta.Weight = weight
		got := map[string]int64{}
		p.Each(func(frames []Frame, n int64) { got[frames[len(frames)-1].Func.Name] += n })
		if len(got) != len(want) {
			t.Errorf("%v: %v", weight, got)
		}
		for name, n := range want {
			if got[name] != n {
				t.Errorf("%v: %s has %d, want %d", weight, name, got[name], n)
			}
		}
	}
	if p.Time != 15*time.Millisecond || p.Counts.Attempted != 4 {
		t.Errorf("%v of CPU in %d samples", p.Time, p.Counts.Attempted)
	}
}

func TestWeightNames(t *testing.T) {
	for w := range Weight(numWeights) {
		text, err := json.Marshal(w)
		var back Weight
		if err != nil || json.Unmarshal(text, &back) != nil || back != w {
			t.Errorf("%v: %s, %v", w, text, err)
		}
	}
	var w Weight
	if json.Unmarshal([]byte(`"miles"`), &w) == nil || Weight(9).String() != "unknown" {
		t.Error("a weight that is none")
	}
}
