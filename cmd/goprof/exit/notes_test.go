package exit

import (
	"strings"
	"testing"
)

// TestDoubtsAreToldOnce: if a run meets three JVMs of one kind, it warns once.
func TestDoubtsAreToldOnce(t *testing.T) {
	var out strings.Builder
	told := Doubts{}
	for range 3 {
		told.Warn(&out, []string{"JDK 29 is new", "this JVM does not export all that goprof uses: \x1b[2J"})
	}
	told.Warn(&out, []string{"JDK 30 is new"})
	want := "goprof: JDK 29 is new\ngoprof: this JVM does not export all that goprof uses: "
	if got := out.String(); !strings.HasPrefix(got, want) || strings.Count(got, "\n") != 3 ||
		strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
}
