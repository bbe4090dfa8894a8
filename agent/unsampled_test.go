//go:build linux

package agent

import (
	"testing"
	"time"

	"goprof/profile"
)

// TestRest: what is missing at each of some cuts is added once. What comes late is not.
func TestRest(t *testing.T) {
	for name, c := range map[string]struct {
		used, samples []time.Duration // until and between cuts, in seconds
		want          time.Duration   // not sampled, in all
	}{
		"nothing is missing":               {[]time.Duration{1, 2, 3, 4, 5, 6}, []time.Duration{1, 1, 1, 1, 1, 1}, 0},
		"a thread's next sample brings it": {[]time.Duration{5, 6, 7, 8, 9, 10}, []time.Duration{0, 0, 0, 8, 1, 1}, 0},
		"a thread ended":                   {[]time.Duration{5, 6, 7, 8, 9, 10}, []time.Duration{3, 1, 1, 1, 1, 1}, 2},
		"threads end all the time":         {[]time.Duration{2, 4, 6, 8, 10, 12}, []time.Duration{1, 1, 1, 1, 1, 1}, 6},
		"it comes after all": {[]time.Duration{5, 6, 7, 8, 9, 10, 11, 12},
			[]time.Duration{3, 1, 1, 1, 3, 1, 0, 0}, 2},
		"too few cuts": {[]time.Duration{5, 6}, []time.Duration{0, 0}, 6},
	} {
		var r unsampled
		sum := time.Duration(0)
		for i, used := range c.used {
			r.sent += c.samples[i] * time.Second
			sum += r.take(used*time.Second, i == len(c.used)-1)
		}
		if sum != c.want*time.Second {
			t.Errorf("%s: %v is not sampled, %v", name, sum, c.want*time.Second)
		}
	}
}

// TestBatchesSumUp: all batches together have what the process has used, and no sample more than was taken.
func TestBatchesSumUp(t *testing.T) {
	for _, rehearsed := range []bool{false, true} {
		b := newBatches(false, newSpan())
		now := time.Now()
		want := 60 * time.Second
		b.Begin(profile.Instant{}, profile.Meta{})
		if rehearsed { // the first half is another agent's
			b.span.from.Store(now.Add(30 * time.Second).UnixNano())
			want = 30*time.Second - time.Second // of which nobody knows the first second
		}
		looks, cpu, of := int64(0), time.Duration(0), 0
		for s := range 60 {
			now = now.Add(time.Second)
			for range 2 {
				at := profile.Instant{Wall: now.UnixNano() - 1}
				b.Sample(&profile.Sample{At: at, Stack: notSampled, CPU: 400 * time.Millisecond})
			}
			used := time.Duration(s+1) * time.Second
			if batch := b.cut(now, 0, used, s == 59); batch != nil {
				of++
				looks += batch.Looks()
				for i := range batch.Samples {
					cpu += time.Duration(batch.Samples[i].Value(profile.CPUTime))
				}
			}
		}
		if off := cpu - want; off.Abs() > time.Second || looks != b.samples {
			t.Errorf("rehearsed %v: %v of %v, %d looks of %d in %d batches", rehearsed, cpu, want, looks, b.samples, of)
		}
		if !rehearsed && cpu != want {
			t.Errorf("%v of %v", cpu, want)
		}
	}
}
