package recording

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"goprof/output/jfr"
	"goprof/profile"
)

// TestTableOfCutOff: the table of a file that was cut off has the whole chunks, and a note.
func TestTableOfCutOff(t *testing.T) {
	var b bytes.Buffer
	w := jfr.NewWriter(&b, jfr.Options{ChunkLength: time.Second})
	for i := range 3 {
		d := int64(i) * int64(2*time.Second)
		if err := w.Mark(profile.Instant{Wall: 1_790_000_000_000_000_000 + d, Ticks: 1 + d}, 0, "deploy", ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(profile.Instant{Wall: 1_790_000_010_000_000_000, Ticks: 1 + int64(10*time.Second)}); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "cut.jfr")
	for _, cut := range []int{0, b.Len() / 2} {
		if err := os.WriteFile(name, b.Bytes()[:b.Len()-cut], 0o600); err != nil {
			t.Fatal(err)
		}
		table, err := TableOf(name, "goprof.Mark", "kind", nil)
		if err != nil {
			t.Fatal(err)
		}
		whole, told := table.Events == 3, strings.Join(table.Notes, " ")
		if table.Events == 0 || whole != (cut == 0) || whole == strings.Contains(told, "end is missing") {
			t.Errorf("%d bytes less: %d events, %q", cut, table.Events, told)
		}
	}
}
