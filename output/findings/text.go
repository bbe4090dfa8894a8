// Package findings writes the findings of a triage: as text, as JSON, and as a page with a flame graph.
package findings

import (
	"fmt"
	"io"
	"strings"

	"goprof/output"
	"goprof/profile"
)

// Nothing returns the text of a triage that has found nothing. It says that nothing is wrong only if all rules could be
// judged.
func Nothing(t *profile.Triage) string {
	things := ""
	switch n := len(rulesOf(t.Unknown)); n {
	case 0:
		return "Nothing is wrong that can be seen from outside."
	case 1:
		things = "1 thing"
	default:
		things = fmt.Sprintf("%d things", n)
	}
	return "Nothing was found, but " + things + " that could be wrong could not be judged: see \"Not known\"."
}

// rulesOf returns the rules that could not be judged.
func rulesOf(unknown []profile.Unknown) map[profile.FindingID]bool {
	rules := map[profile.FindingID]bool{}
	for _, u := range unknown {
		rules[u.ID] = true
	}
	return rules
}

// Text writes one page for people:
//
//  1. deadlock (critical)
//     2 threads wait for each other, for ever: a deadlock.
//     "a" tid=12 waits for ...
//     next: goprof locks --pid 4711
func Text(to io.Writer, t *profile.Triage) error {
	var b strings.Builder
	if len(t.Findings) == 0 {
		b.WriteString(Nothing(t) + "\n")
	}
	for i := range t.Findings {
		f := &t.Findings[i]
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%d. %s (%s)\n   %s\n", i+1, f.ID, f.Severity, output.Printable(f.Claim))
		for _, line := range f.Evidence {
			fmt.Fprintf(&b, "     %s\n", output.Printable(line))
		}
		fmt.Fprintf(&b, "   next: %s\n", output.Printable(f.Next))
	}
	list(&b, "Note", t.Notes)
	list(&b, "Not known", unknownLines(t))
	_, err := io.WriteString(to, b.String())
	return err
}

// unknownLines lists what could not be judged, one line for each reason.
func unknownLines(t *profile.Triage) (lines []string) {
	ids := map[string][]string{}
	var reasons []string
	for _, u := range t.Unknown {
		if ids[u.Why] == nil {
			reasons = append(reasons, u.Why)
		}
		ids[u.Why] = append(ids[u.Why], string(u.ID))
	}
	for _, why := range reasons {
		lines = append(lines, fmt.Sprintf("%s: %s", strings.Join(ids[why], ", "), why))
	}
	return lines
}

func list(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", title)
	for _, line := range lines {
		fmt.Fprintf(b, "  %s\n", output.Printable(line))
	}
}

// JSON writes a profile.Triage with its JSON fields.
func JSON(to io.Writer, t *profile.Triage) error {
	all := profile.Triage{Findings: append([]profile.Finding{}, t.Findings...), Notes: append([]string{}, t.Notes...),
		Unknown: append([]profile.Unknown{}, t.Unknown...)}
	for i := range all.Findings {
		if all.Findings[i].Evidence == nil {
			all.Findings[i].Evidence = []string{}
		}
	}
	return output.WriteJSON(to, all)
}
