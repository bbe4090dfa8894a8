//go:build linux

package recorder

import (
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/session"
)

// TestWhyNothingWasSeen: goprof says that all threads were idle only of a JVM that used no CPU time.
func TestWhyNothingWasSeen(t *testing.T) {
	hindered := &profile.Summary{Hindered: &profile.Hindered{LeftOut: 9, Why: "because", Cure: "do this"},
		Meta: profile.Meta{Duration: 2 * time.Second}}
	r := &Recorder{part: part{pid: 7, want: Part{RecordOptions: session.RecordOptions{Interval: 10 * time.Millisecond}}}}
	if why, remedy := r.nothingSeen(&result{used: time.Second, summary: *hindered}); remedy != "do this" ||
		!strings.HasPrefix(why, "no thread was stopped") || !strings.HasSuffix(why, ": because") {
		t.Errorf("hindered: %q, %q", why, remedy)
	}
	for _, c := range []struct {
		used        time.Duration
		looks       *profile.Looks
		why, remedy string
	}{
		{0, nil, "all its threads were idle: it used no CPU time in 2 s", "goprof dump --pid 7 shows what they wait for"},
		{1, nil, "it used only 0 µs of CPU time in 2 s, and a sample stands for 10 ms", "goprof dump --pid 7 shows"},
		{3 * time.Millisecond, nil, "it used only 3 ms of CPU time in 2 s, and a sample stands for 10 ms",
			"-d longer, or -r higher"},
		{40 * time.Millisecond, nil, "it used 40 ms of CPU time in 2 s, enough for some samples", "-d longer, or -r higher"},
		{time.Second, nil, "it used 1 s of CPU time in 2 s, but goprof never met it on a CPU: the machine is " +
			"short", "sudo goprof record"},
		{time.Second, &profile.Looks{}, "none of its threads was in a state", "goprof dump"},
	} {
		res := &result{used: c.used, summary: profile.Summary{Meta: profile.Meta{Duration: 2 * time.Second}, Looks: c.looks}}
		why, remedy := r.nothingSeen(res)
		if !strings.HasPrefix(why, c.why) || !strings.Contains(remedy, c.remedy) {
			t.Errorf("%v: %q, %q", c.used, why, remedy)
		}
		if c.used > 0 && strings.Contains(why, "idle") {
			t.Errorf("idle, with %v: %q", c.used, why)
		}
	}
}
