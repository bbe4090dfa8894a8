//go:build linux

package agent

import (
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/profile/batch"
	"goprof/sampler"
	"goprof/session"
)

// drivenWithEvents is an agent with events, and two JVMs that are busy. Events are for the first one alone.
func drivenWithEvents(t *testing.T, maxCPU float64) *driven {
	t.Helper()
	s := Default()
	s.MaxCPU, s.Events, s.EventMatch = maxCPU, []session.AskedEvent{{Name: "alloc"}, {Name: "none"}}, rules(t, "Shop")
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	d := drive(t, s)
	d.w.start(2, "Shop")
	d.w.start(3, "Other")
	for range 20 {
		d.w.use(2, 100*time.Millisecond)
		d.w.use(3, 100*time.Millisecond)
		d.beats(1)
	}
	return d
}

func (d *driven) alloc() *fakeBeside {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	return d.w.jvms[2].beside["alloc"]
}

// TestEventsAreBatchesOfTheirOwn: of the JVMs that are wanted, and with no interval of time. An event that cannot be
// had is said once and counted, and the JVM is recorded without.
func TestEventsAreBatchesOfTheirOwn(t *testing.T) {
	d := drivenWithEvents(t, 0)
	var events, others []*batch.Batch
	for _, b := range d.batches {
		if b.Event.Name == "" {
			others = append(others, b)
		} else {
			events = append(events, b)
		}
	}
	if len(others) != 2 || others[0].Meta.Interval != d.settings.interval() {
		t.Errorf("%d batches of CPU time: %+v", len(others), others)
	}
	if len(events) != 1 || events[0].Event != (profile.EventKind{Name: "alloc", Unit: profile.Bytes}) ||
		events[0].Meta.PID != 2 || events[0].Meta.Interval != 0 || events[0].Weight() != profile.Bytes {
		t.Errorf("%d batches of events: %+v", len(events), events)
	}
	if len(d.w.jvms[3].beside) != 0 || d.alloc() == nil {
		t.Errorf("the first one has %v, and the other one %v", d.w.jvms[2].beside, d.w.jvms[3].beside)
	}
	if len(d.said) != 1 || d.said[0] != "process 2 (Shop) is recorded without event none: there is none" {
		t.Errorf("said %q", d.said)
	}
	var page strings.Builder
	d.Metrics().Write(&page)
	for _, line := range []string{`event_samples_total{event="alloc"} 1`, `event_refused_total{event="none"} 1`,
		`samples_total 2`} {
		if !strings.Contains(page.String(), "goprof_agent_"+line+"\n") {
			t.Errorf("no %s in\n%s", line, &page)
		}
	}
}

// TestBudgetCountsEvents: where there are too many samples, an event with many loses some before the JVM's CPU time
// does.
func TestBudgetCountsEvents(t *testing.T) {
	d := drivenWithEvents(t, 0.01)
	for range 20 {
		d.w.use(2, 100*time.Millisecond)
		d.w.mu.Lock()
		d.w.jvms[2].st.Taken += 2
		d.w.jvms[2].beside["alloc"].st.Taken += 100
		d.w.own += 30 * time.Millisecond // 20 ms are 1 % of two CPUs
		d.w.mu.Unlock()
		d.beats(1)
	}
	if of := d.alloc(); of.share >= 0.9 || of.share >= d.w.jvms[2].share {
		t.Errorf("the event has %.2f of its samples, and CPU time %.2f", of.share, d.w.jvms[2].share)
	}
}

// hit lets so many seconds pass, with hits of the first JVM's probes.
func (d *driven) hit(aSecond uint64, seconds int) {
	for range seconds {
		d.w.use(2, 100*time.Millisecond)
		d.w.mu.Lock()
		st := &d.w.jvms[2].beside["alloc"].st
		if st.Events == nil {
			st.Events = []sampler.EventCount{{Name: "alloc"}}
		}
		if !d.w.jvms[2].beside["alloc"].dropped {
			st.Events[0].Hits += aSecond
		}
		d.w.mu.Unlock()
		d.beats(1)
	}
}

// mostHits is how many hits a second the budget permits.
func (d *driven) mostHits() uint64 {
	return uint64(d.settings.MaxCPU / 2 * float64(d.w.CPUs()) * float64(time.Second/hitCost))
}

// TestDearEventsAreDropped: each hit of a probe costs its thread the breakpoint, whether it becomes a sample or not. A
// single burst of hits drops nothing.
func TestDearEventsAreDropped(t *testing.T) {
	d := drivenWithEvents(t, 0.01)
	half := d.mostHits()
	if d.hit(half/2, 12); d.alloc().dropped {
		t.Error("it is dropped at half of what it may cost")
	}
	d.w.mu.Lock()
	d.w.jvms[2].beside["alloc"].st.Events[0].Hits += 100 * half
	d.w.mu.Unlock()
	if d.hit(half/2, 12); d.alloc().dropped {
		t.Error("it is dropped for a single burst")
	}
	d.hit(2*half, 12)
	if !d.alloc().dropped || d.stateOf(2) != recorded {
		t.Errorf("dropped: %v, and the JVM is %v", d.alloc().dropped, d.stateOf(2))
	}
	if text := strings.Join(d.said, "\n"); strings.Count(text, "without event alloc: it happens") != 1 {
		t.Errorf("said %q", d.said)
	}
}

// TestDroppedEventsAreTriedAgain: after a minute, and after two where they were too dear again. Then one dear look is
// enough. An event that is no longer too dear stays.
func TestDroppedEventsAreTriedAgain(t *testing.T) {
	d := drivenWithEvents(t, 0.01)
	dear := 4 * d.mostHits()
	d.until(t, dear, func() bool { return d.alloc().dropped })
	if wait := d.until(t, dear, func() bool { return !d.alloc().dropped }); wait < dearAgain || wait > 2*dearAgain {
		t.Errorf("it was tried again after %v", wait)
	}
	wait := d.until(t, dear, func() bool { return d.alloc().dropped })
	if wait > 2*holdEvery {
		t.Errorf("it was dropped again after %v", wait)
	}
	if wait = d.until(t, dear, func() bool { return !d.alloc().dropped }); wait < 2*dearAgain || wait > 3*dearAgain {
		t.Errorf("it was tried a second time after %v", wait)
	}
	if d.hit(1, 180); d.alloc().dropped || d.alloc().resumes != 2 {
		t.Errorf("dropped: %v, after %d attempts", d.alloc().dropped, d.alloc().resumes)
	}
	var page strings.Builder
	d.Metrics().Write(&page)
	for _, line := range []string{`event_dropped_total{event="alloc"} 2`, `event_retried_total{event="alloc"} 2`} {
		if !strings.Contains(page.String(), "goprof_agent_"+line+"\n") {
			t.Errorf("no %s in\n%s", line, &page)
		}
	}
}

// until lets seconds pass until something is so.
func (d *driven) until(t *testing.T, aSecond uint64, is func() bool) time.Duration {
	t.Helper()
	for from := d.now; ; d.hit(aSecond, 1) {
		if is() {
			return d.now.Sub(from)
		}
		if d.now.Sub(from) > time.Hour {
			t.Fatal("it does not come")
		}
	}
}

// An event that was dropped, and cannot be begun anew, is tried again later. One that was never begun is not.
func TestFailedRetryIsPostponed(t *testing.T) {
	now := time.Now()
	r := &record{dropped: true, drops: 1}
	r.postpone(now)
	if wait := r.again.Sub(now); wait != 2*dearAgain || r.drops != 2 {
		t.Errorf("it is tried again in %v, after %d failures", wait, r.drops)
	}
	fresh := &record{}
	if fresh.postpone(now); !fresh.again.IsZero() {
		t.Error("an event that was not dropped waits to be tried again")
	}
}
