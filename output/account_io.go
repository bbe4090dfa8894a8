package output

import (
	"strings"

	"goprof/profile"
)

// mostIOLines bounds the files and peers that the account lists.
const mostIOLines = 8

// io lists the files and peers whose calls took longest. Waits of selectors are left out: these wait all the time.
func (a *account) io(io *profile.IO) {
	title, shown := "Calls", 0
	for i := range io.Sums {
		s := &io.Sums[i]
		if s.Op == profile.IOWait.String() || s.Op == profile.IOAccept.String() {
			continue
		}
		if shown++; shown > mostIOLines {
			break
		}
		a.line(title, "%s", ioLine(s))
		title = ""
	}
	for _, l := range io.Lost {
		a.line("", "%s of %s in no sum: %s", calls(l.Calls), Span(l.Took), CleanName(l.Why))
	}
	for _, note := range io.Notes {
		a.line("", "%s", CleanName(note))
	}
}

func ioLine(s *profile.IOSum) string {
	var parts []string
	if s.Calls > 0 {
		parts = append(parts, Span(s.Took)+" in "+calls(s.Calls))
	}
	if s.Bytes > 0 {
		parts = append(parts, size(s.Bytes))
	}
	if s.Failed > 0 {
		parts = append(parts, Grouped(s.Failed)+" failed")
	}
	if s.Pending > 0 {
		parts = append(parts, calls(s.Pending)+" had not ended after "+Span(s.Pended))
	}
	return CleanName(profile.IOLabelOf(s.Op, s.Target)) + " " + strings.Join(parts, ", ")
}

func calls(n int64) string { return groupedCount(n, "call") }
