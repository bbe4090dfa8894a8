//go:build linux

package session

import (
	"testing"

	"goprof/sampler/look"
)

// TestStaleSamplesAreMadeUp: the next samples of a thread also count for its stale ones, with their CPU time.
func TestStaleSamplesAreMadeUp(t *testing.T) {
	r := &cpuTime{}
	of := func(tid int, cpu int64) *look.Look {
		l := &look.Look{}
		l.Reset()
		l.TID, l.CPU = tid, cpu
		return l
	}
	var samples, cpu int64
	for range 20 {
		r.owe(of(1, 10))
	}
	r.owe(of(2, 7))
	for range 40 {
		l := of(1, 10)
		r.settleOwed(l)
		samples, cpu = samples+l.Samples(), cpu+l.CPU
		if l.Samples() > 4 {
			t.Errorf("one sample counts %d", l.Samples())
		}
	}
	if samples != 60 || cpu != 600 || r.madeUp != 20 || len(r.owed) != 1 {
		t.Errorf("%d samples, %d ns, %d made up, %v owed", samples, cpu, r.madeUp, r.owed)
	}
	if n := r.effective(samples); n > 40 || n < 25 {
		t.Errorf("60 samples of 40 looks tell as much as %d", n)
	}
	r = &cpuTime{}
	r.settleOwed(of(1, 10))
	if n := r.effective(1); n != 0 || r.madeUp != 0 {
		t.Errorf("without losses: %d, %d", n, r.madeUp)
	}
}
