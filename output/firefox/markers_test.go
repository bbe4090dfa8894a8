package firefox

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestMarkerTextIsCut: a long text of a file is not copied whole into many markers.
func TestMarkerTextIsCut(t *testing.T) {
	w, to := &writer{}, &markers{}
	w.mark(to, marker{sort: markProcess, text: "x" + strings.Repeat("\u00e4", 100_000)})
	if got := to.list[0].text; len(got) > maxText+3 || !utf8.ValidString(got) {
		t.Errorf("%d bytes, %.20q", len(got), got)
	}
}
