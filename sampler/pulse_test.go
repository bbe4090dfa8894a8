//go:build linux

package sampler

import (
	"testing"
	"time"

	"goprof/sampler/ptrace"
)

func TestPulseAfter(t *testing.T) {
	for _, c := range []struct{ moment, every, want int64 }{
		{0, 10, 10}, {1, 10, 10}, {9, 10, 10}, {10, 10, 20}, {11, 10, 20}, {5, 1, 6},
	} {
		if got := PulseAfter(c.moment, c.every); got != c.want {
			t.Errorf("after %d, each %d: %d, not %d", c.moment, c.every, got, c.want)
		}
	}
}

// TestUntilPulse: what a Pulse sleeps ends at a multiple, whenever it is asked.
func TestUntilPulse(t *testing.T) {
	const every, shift = 20 * time.Millisecond, 3 * time.Millisecond
	next := func(moment int64) int64 { return PulseAfter(moment-int64(shift), int64(every)) + int64(shift) }
	for range 100 {
		before := ptrace.Monotonic()
		left := int64(untilPulse(every, shift))
		after := ptrace.Monotonic()
		if left <= 0 || before+left > next(after) || after+left < next(before) {
			t.Fatalf("between %d and %d: %d to go until %d", before, after, left, next(before))
		}
		time.Sleep(time.Millisecond / 3)
	}
}

// TestPulse: ticks never come before their moment. These moments do not depend on when the Pulse was made, or on how
// late the tick before was.
func TestPulse(t *testing.T) {
	const every, shift = 20 * time.Millisecond, 3 * time.Millisecond
	p := NewPulse(every, shift)
	defer p.Stop()
	for last := int64(0); last < 5; last++ {
		before := ptrace.Monotonic()
		want := PulseAfter(before-int64(shift), int64(every)) + int64(shift)
		if want-before > int64(every) || (want-int64(shift))%int64(every) != 0 {
			t.Fatalf("at %d the next moment is %d", before, want)
		}
		p.Next(every, shift)
		<-p.C
		if now := ptrace.Monotonic(); now < want {
			t.Fatalf("it came at %d, and its moment is %d", now, want)
		}
		time.Sleep(every / 3)
	}
}
