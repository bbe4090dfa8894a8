//go:build linux

package session

import (
	"errors"
	"testing"

	"goprof/profile"
)

// A recording yields if more than a tenth of at least a hundred stacks are cut because only a stop would copy what they
// need.
func TestYieldsToStops(t *testing.T) {
	for _, c := range []struct {
		name            string
		yield           bool
		whole, cut, bad int64
		ends            error
	}{
		{"few stacks", true, 49, 49, 0, nil},
		{"a tenth", true, 90, 10, 0, nil},
		{"more than a tenth", true, 89, 11, 0, ErrCut},
		{"cut for what a stop does not mend", true, 50, 0, 50, nil},
		{"by perf, as was asked for", false, 0, 200, 0, nil},
	} {
		stops := 0
		r := &recording{opt: RecordOptions{Yield: c.yield}, ending: ending{stop: func() { stops++ }}}
		for range c.cut {
			r.countCut(profile.NoUnwindInfo, 1)
		}
		r.countCut(profile.Continuation, c.bad)
		r.countCut(profile.Whole, c.whole)
		r.countCut(profile.Whole, 1)
		if !errors.Is(r.yielding.why, c.ends) || (stops > 0) != (c.ends != nil) || stops > 1 {
			t.Errorf("%s: %v, stopped %d times", c.name, r.yielding.why, stops)
		}
	}
}
