//go:build linux

package vitals

import (
	"strings"
	"testing"
	"time"

	"goprof/process/maybe"
)

// TestCSV: a field that is not known is empty, and not zero.
func TestCSV(t *testing.T) {
	r := &Reading{At: time.Unix(0, 0)}
	r.Process.Threads = maybe.Known[uint64](0)
	var table Table
	table.Add(r)
	var b strings.Builder
	if err := table.CSV(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "time,uptime_seconds,cpu_seconds,") ||
		!strings.HasPrefix(lines[1], "1970-01-01T00:00:00Z,,,,,0,") ||
		strings.Count(lines[0], ",") != strings.Count(lines[1], ",") {
		t.Errorf("%q", lines)
	}
}
