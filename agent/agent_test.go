//go:build linux

package agent

import (
	"errors"
	"strings"
	"testing"
	"time"

	"goprof/diagnose"
	"goprof/profile"
	"goprof/profile/resource"
)

// The agent does not attach to a JVM that does nothing. It attaches to one that uses CPU time, and lets it go when it
// rests.
func TestOnlyTheBusyAreAttachedTo(t *testing.T) {
	told := Default()
	told.Attributes.Set(resource.NodeName, "node-7")
	d := drive(t, told)
	d.w.start(1, "Quiet")
	d.w.start(2, "Busy")
	for range 20 {
		d.w.use(2, 100*time.Millisecond)
		d.w.use(1, 100*time.Microsecond)
		d.beats(1)
	}
	if d.w.attached[1] != 0 || d.stateOf(1) != idle {
		t.Errorf("the quiet one: attached %d times, %v", d.w.attached[1], d.stateOf(1))
	}
	if d.w.attached[2] != 1 || d.stateOf(2) != recorded {
		t.Errorf("the busy one: attached %d times, %v", d.w.attached[2], d.stateOf(2))
	}
	if len(d.batches) == 0 || d.batches[0].Resource.Get(resource.ServiceName) != "Busy" {
		t.Errorf("batches: %v", d.batches)
	}
	if d.batches[0].Resource.Get(resource.NodeName) != "node-7" {
		t.Errorf("%v lacks what the agent was told", d.batches[0].Resource)
	}
	d.beats(130)
	if d.stateOf(2) != idle {
		t.Errorf("the busy one rests for two minutes, and is %v", d.stateOf(2))
	}
}

// If the list of processes cannot be read (no descriptor is left, say), no JVM counts as gone.
func TestBlindForAMoment(t *testing.T) {
	d := drive(t, Default())
	d.w.start(2, "Busy")
	d.w.use(2, time.Second)
	d.beats(2)
	for _, blind := range []bool{true, false} {
		d.w.mu.Lock()
		d.w.blind = blind
		d.w.mu.Unlock()
		d.beats(3)
		if d.guests[2] == nil || d.stateOf(2) != recorded || d.w.attached[2] != 1 {
			t.Errorf("blind %v: %+v, attached %d times", blind, d.guests[2], d.w.attached[2])
		}
	}
}

// A JVM is attached to soon: its first samples go out within two batches' time.
func TestFirstBatchIsSoon(t *testing.T) {
	d := drive(t, Default())
	d.beats(3)
	d.w.start(7, "New")
	for range int(2*d.settings.Every/time.Second) + 1 {
		d.w.use(7, 300*time.Millisecond)
		d.beats(1)
	}
	if len(d.batches) == 0 {
		t.Error("no batch")
	}
}

// A stopped JVM uses no CPU time, and yet is not idle: the agent says so, counts it, and does not let it go.
func TestStoppedIsNotIdle(t *testing.T) {
	d := drive(t, Default())
	j := d.w.start(2, "Held")
	for range 5 {
		d.w.use(2, 100*time.Millisecond)
		d.beats(1)
	}
	stop := func(stopped bool) {
		d.w.mu.Lock()
		defer d.w.mu.Unlock()
		j.stopped = stopped
	}
	stop(true)
	d.beats(130)
	if len(d.said) != 1 || !strings.Contains(d.said[0], "process 2 (Held) is stopped") || d.stateOf(2) != recorded {
		t.Errorf("said %q, and is %v", d.said, d.stateOf(2))
	}
	var page strings.Builder
	d.Metrics().Write(&page)
	if !strings.Contains(page.String(), `goprof_agent_jvms{state="stopped"} 1`) {
		t.Error(page.String())
	}
	stop(false)
	d.w.use(2, 100*time.Millisecond)
	d.beats(2)
	if len(d.said) != 2 || !strings.Contains(d.said[1], "goes on") {
		t.Errorf("said %q", d.said)
	}
}

// The agent tries a JVM again if it could not attach because the JVM was starting.
func TestStartingIsTriedAgain(t *testing.T) {
	d := drive(t, Default())
	j := d.w.start(3, "Slow")
	j.fails = errStarts
	for n := range 60 {
		if n == 5 {
			d.w.mu.Lock()
			j.fails = nil
			d.w.mu.Unlock()
		}
		d.w.use(3, time.Second)
		d.beats(1)
	}
	if d.stateOf(3) != recorded {
		t.Errorf("attached %d times, and is %v", d.w.attached[3], d.stateOf(3))
	}
}

// A denied JVM is left alone, even if it could not be recorded anyway.
func TestDeniedAreNotComplainedOf(t *testing.T) {
	s := Default()
	s.Choice.Deny = rules(t, "Odd")
	d := drive(t, s)
	d.w.start(3, "Odd").Problem = &diagnose.Cause{Name: "openj9"}
	for range 60 {
		d.w.use(3, time.Second)
		d.beats(1)
	}
	if d.stateOf(3) != denied || len(d.said) != 0 || d.w.attached[3] != 0 {
		t.Errorf("%v, said %q, attached %d times", d.stateOf(3), d.said, d.w.attached[3])
	}
}

// The agent names a JVM that cannot be recorded once, and counts it.
func TestUnsupportedIsSaidOnce(t *testing.T) {
	d := drive(t, Default())
	d.w.start(3, "Odd").fails = errors.New("no tables")
	for range 60 {
		d.w.use(3, time.Second)
		d.beats(1)
	}
	if d.w.attached[3] != 1 || len(d.said) != 1 || !strings.Contains(d.said[0], "process 3 (Odd)") {
		t.Errorf("attached %d times, said %q", d.w.attached[3], d.said)
	}
	var page strings.Builder
	d.Metrics().Write(&page)
	if !strings.Contains(page.String(), `goprof_agent_refused_total{cause="unsupported"} 1`) {
		t.Error(page.String())
	}
}

// A JVM ends, its number goes to another process, or it becomes another program. If the kernel has killed it for want
// of memory, the agent says so.
func TestJVMsEnd(t *testing.T) {
	d := drive(t, Default())
	d.w.start(4, "Short").notes = []profile.Note{{Name: profile.OutOfMemory, Text: "the kernel killed it"}}
	d.w.use(4, time.Second)
	d.beats(2)
	d.w.stop(4)
	d.handle(<-d.events) // the recording may notice it before the finder
	d.beats(2)
	for wait := 0; len(d.batches) == 0 && wait < mostWaits; wait++ {
		d.beats(1)
		time.Sleep(time.Millisecond)
	}
	if len(d.said) != 1 || d.said[0] != "process 4 (Short): the kernel killed it" {
		t.Errorf("said %q", d.said)
	}
	if len(d.guests) != 0 || d.Metrics().Counts().Ended != 1 || len(d.batches) != 1 {
		t.Errorf("%d guests, %+v, %d batches", len(d.guests), d.Metrics().Counts(), len(d.batches))
	}
	if m := d.Metrics(); m.endedRecorded.Load() != 1 || m.execs.Load() != 0 {
		t.Errorf("%d ended while they were recorded, %d became another program", m.endedRecorded.Load(), m.execs.Load())
	}
	d.w.start(4, "Other").started = time.Hour // the same number
	d.w.use(4, time.Second)
	d.beats(2)
	if g := d.guests[4]; g == nil || g.Main != "Other" {
		t.Errorf("%+v", g)
	}
	d.w.mu.Lock()
	d.w.jvms[4].comm = "sh" // exec
	d.w.mu.Unlock()
	d.beats(6) // jvmLook
	if d.guests[4] != nil {
		t.Error("a shell is a JVM")
	}
}

// TestHiddenNames: if names are taken out, what the agent says of a JVM has neither its name nor words of the cause.
func TestHiddenNames(t *testing.T) {
	d := drive(t, Default())
	d.Hide(func(text string) string { return strings.NewReplacer("Zebra", "C1", "zebra", "w2").Replace(text) })
	d.w.start(3, "Zebra").fails = errors.New("no tables in /home/zebra/libjvm.so")
	held := d.w.start(2, "Zebra")
	for range 5 {
		d.w.use(3, time.Second)
		d.w.use(2, 100*time.Millisecond)
		d.beats(1)
	}
	for _, stopped := range []bool{true, false} {
		d.w.mu.Lock()
		held.stopped = stopped
		d.w.mu.Unlock()
		d.beats(5)
		d.w.use(2, 100*time.Millisecond)
		d.beats(2)
	}
	text := strings.Join(d.said, "\n")
	if len(d.said) < 3 || strings.Contains(strings.ToLower(text), "zebra") || strings.Count(text, "(C1)") != len(d.said) {
		t.Errorf("said %q", d.said)
	}
}

// TestHealthz: the agent is well while it looks at its host, and not before the first look.
func TestHealthz(t *testing.T) {
	m := newMetrics()
	if m.Healthy() {
		t.Error("it has not looked yet")
	}
	if m.census(nil); !m.Healthy() {
		t.Error("it has just looked")
	}
	m.began = m.began.Add(-healthyWithin)
	if m.Healthy() {
		t.Error("it looked long ago")
	}
}
