//go:build linux

package agent

import (
	"strings"
	"testing"
	"time"
)

// What is kept of JVMs stays within max-memory: the busiest JVMs are recorded. If they grow, the agent lets the least
// busy ones go, says so and counts them. It does not attach to a JVM without room for it.
func TestMemoryIsBounded(t *testing.T) {
	s := Default()
	s.MaxCPU, s.MaxMemory = 0, 100e6 // 60 MB of it in use
	d := drive(t, s)
	const jvms = 20
	for pid := 1; pid <= jvms; pid++ {
		d.w.start(pid, "Shop")
	}
	work := func(beats int) {
		for range beats {
			for pid := 1; pid <= jvms; pid++ {
				d.w.use(pid, time.Duration(pid)*100*time.Millisecond)
			}
			d.beats(1)
			d.collect()
		}
	}
	d.w.live = 6e6
	work(40)
	if n := d.recordedNow(); n != 10 {
		t.Errorf("%d JVMs are recorded, and there is room for 10", n)
	}
	if d.Metrics().evicted.Load() != 0 {
		t.Errorf("%d were let go, and none is too many", d.Metrics().evicted.Load())
	}
	d.w.mu.Lock()
	d.w.live = 12e6
	d.w.mu.Unlock()
	work(60)
	if n := d.recordedNow(); n != 5 {
		t.Errorf("%d JVMs are recorded, and there is room for 5", n)
	}
	if n := d.Metrics().evicted.Load(); n != 5 || len(d.said) != 5 || !strings.Contains(d.said[0], "max-memory is 95 MB") {
		t.Errorf("%d were let go; said %q", n, d.said)
	}
	for pid := 16; pid <= jvms; pid++ { // these were attached to first, and do most
		if d.stateOf(pid) != recorded {
			t.Errorf("process %d is %v", pid, stateNames[d.stateOf(pid)])
		}
	}
}

// TestRoomForOne: if no JVM is recorded, what is in use belongs to JVMs that have ended. The next JVM does not wait for
// a garbage collection, which comes every two minutes in an agent that does nothing. It is not let go before that.
func TestRoomForOne(t *testing.T) {
	for _, garbage := range []int64{50e6, 90e6} {
		s := Default()
		s.MaxCPU, s.MaxMemory = 0, 100e6
		d := drive(t, s)
		d.w.start(1, "Shop")
		d.w.live, d.w.garbage = 5e6, garbage
		for range 5 {
			d.w.use(1, time.Second)
			d.beats(1)
		}
		if d.stateOf(1) != recorded {
			t.Errorf("it is %v beside %d MB", stateNames[d.stateOf(1)], garbage/1e6)
		}
	}
}

// collect is a garbage collection, after the recordings that were let go have ended.
func (d *driven) collect() {
	for wait := 0; wait < mostWaits; wait++ {
		d.w.mu.Lock()
		done := d.w.holding == d.recordedNow()
		if done {
			d.w.cycles++
		}
		d.w.mu.Unlock()
		if done {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (d *driven) recordedNow() (n int) {
	for _, g := range d.guests {
		if g.state == recorded {
			n++
		}
	}
	return n
}

// Garbage may grow, but not beyond a tenth of the bound.
func TestGarbageMayGrow(t *testing.T) {
	for bound, want := range map[int64]int64{0: growth, 400_000_000: growth, 50_000_000: 5_000_000} {
		s := Default()
		s.MaxMemory = bound
		d := drive(t, s)
		d.beats(1)
		if d.w.growth != want {
			t.Errorf("max-memory %d: %d bytes, want %d", bound, d.w.growth, want)
		}
	}
	for _, c := range []struct{ live, growth, want int64 }{{16 << 20, 16 << 20, 100}, {200 << 20, 16 << 20, 30},
		{1 << 20, 16 << 20, 400}, {0, 16 << 20, 400}} {
		if got := growthPercent(c.live, c.growth); got != c.want {
			t.Errorf("%d in use, %d more: %d %%, not %d", c.live, c.growth, got, c.want)
		}
	}
}
