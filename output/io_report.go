package output

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"goprof/profile"
)

// IOKeys are the keys of --by that sum up calls which read and write, with the kinds of targets that each shows.
var IOKeys = map[string][]string{
	"file": {profile.IOFile, profile.IOOther},
	"peer": {profile.IOPeer, profile.IOClient, profile.IOListen, profile.IOName},
}

// ioReport has the files or peers that a recording has counted, the longest first.
type ioReport struct {
	By      string          `json:"by"`
	Rows    []profile.IOSum `json:"rows"`
	Omitted int             `json:"omitted"`
}

// IOReport returns two functions, which write a report for machines and for people. The report has the files or peers
// that a recording has counted, by a key, the longest first: the first top rows, or all if top is 0.
func IOReport(sums *profile.IO, by string, top int) (json, text func(io.Writer) error) {
	r := &ioReport{By: by, Rows: []profile.IOSum{}}
	for _, s := range sums.Sums {
		if slices.Contains(IOKeys[by], s.Kind) {
			r.Rows = append(r.Rows, s)
		}
	}
	if top > 0 && len(r.Rows) > top {
		r.Omitted, r.Rows = len(r.Rows)-top, r.Rows[:top]
	}
	return func(w io.Writer) error { return WriteJSON(w, r) }, r.text
}

func (r *ioReport) text(to io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%10s %10s %10s %10s  %s\n", "took", "calls", "each", "bytes", r.By)
	for i := range r.Rows {
		s := &r.Rows[i]
		each, bytes, more := "", "", ""
		if s.Calls > 0 {
			each = Span(s.Took / time.Duration(s.Calls))
		}
		if s.Bytes > 0 {
			bytes = Grouped(s.Bytes)
		}
		if s.Failed > 0 {
			more += fmt.Sprintf("  %s failed", Grouped(s.Failed))
		}
		if s.Pending > 0 {
			more += fmt.Sprintf("  %s had not ended after %s", Grouped(s.Pending), Span(s.Pended))
		}
		fmt.Fprintf(&b, "%10s %10s %10s %10s  %s%s\n", Span(s.Took), Grouped(s.Calls), each, bytes,
			CleanName(profile.IOLabelOf(s.Op, s.Target)), more)
	}
	if r.Omitted > 0 {
		fmt.Fprintf(&b, "%45sand %d more: --top 0 shows all\n", "", r.Omitted)
	}
	_, err := io.WriteString(to, b.String())
	return err
}
