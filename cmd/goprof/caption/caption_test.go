package caption

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"goprof/output/recording"
	"goprof/profile"
)

// TestAboutForPeople: a page has figures as people write them. It does not list events that did not happen.
func TestAboutForPeople(t *testing.T) {
	start := time.Date(2026, 11, 23, 6, 40, 55, 0, time.UTC)
	s := &profile.Summary{Attempted: 54459, Truncated: 1234, Quality: profile.Fair, OwnCPU: 40461335}
	text := func() string {
		i := &recording.Info{Meta: profile.Meta{Start: start, Duration: time.Hour + 7071*time.Millisecond}}
		return fmt.Sprint(recorded(i), accountOf(s))
	}
	for _, want := range []string{"2026-11-23T06:40:55Z, for 1 h 0 min 7 s]", "[quality fair]", "1,234 (2.3%)",
		"40.5 ms"} {
		if !strings.Contains(text(), want) {
			t.Errorf("%q is not in %s", want, text())
		}
	}
	if strings.Contains(text(), "pauses") {
		t.Errorf("pauses of an engine that has none: %s", text())
	}
	s.Pauses = profile.Pauses{Count: 9, P50: 21345, P99: 80_000, Max: time.Millisecond}
	if want := "[pauses p50 21.3 µs, p99 80 µs, max 1 ms]"; !strings.Contains(text(), want) {
		t.Errorf("%q is not in %s", want, text())
	}
}
