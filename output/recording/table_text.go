package recording

import (
	"fmt"
	"io"
	"strings"

	"goprof/output"
)

// Text writes the table for people.
func (t *Table) Text(to io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s events %s\n\n", output.Grouped(t.Events), output.CleanName(t.Event))
	fmt.Fprintf(&b, "%10s %7s %10s  %s\n", "events", "", "took", output.CleanName(t.By))
	for _, row := range t.Rows {
		took := ""
		if row.Duration > 0 {
			took = output.Span(row.Duration)
		}
		fmt.Fprintf(&b, "%10s %7s %10s  %s\n", output.Grouped(row.Count), output.Percent(row.Count, t.Events), took,
			output.CleanName(row.Value))
	}
	if t.Omitted > 0 {
		fmt.Fprintf(&b, "%31sand %d more: --top 0 shows all\n", "", t.Omitted)
	}
	_, err := io.WriteString(to, b.String())
	return err
}
