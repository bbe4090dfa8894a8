package findings

import (
	"fmt"
	"io"
	"strings"

	"goprof/output"
	"goprof/output/flame"
	"goprof/profile"
)

// Page writes the findings and, below them, the flame graph of the CPU time during the triage. It merges the threads of
// a pool.
func Page(to io.Writer, t *profile.Triage, tree *output.Tree, o flame.Options) error {
	o.Above = section(t)
	tree, o.Whole = tree.Drawn(output.Shape{GroupThreads: true}.Drawn())
	return flame.Page(to, tree, o)
}

// section returns the findings as HTML. It escapes all text, because the text may have names of the target. (Package
// html/template would also do that, but would keep the linker from leaving out any method of the program.)
func section(t *profile.Triage) string {
	var b strings.Builder
	b.WriteString(`<section id="findings" tabindex="0" aria-label="findings">` + "\n")
	if len(t.Findings) == 0 {
		fmt.Fprintf(&b, "<p>%s</p>\n", plain(Nothing(t)))
	}
	b.WriteString("<ol>\n")
	for i := range t.Findings {
		f := &t.Findings[i]
		fmt.Fprintf(&b, "<li class=%q><p><b>%s</b> (%s) %s</p>\n", plain(string(f.Severity)), plain(string(f.ID)),
			plain(string(f.Severity)), plain(f.Claim))
		items(&b, f.Evidence)
		fmt.Fprintf(&b, "<p>next: <code>%s</code></p></li>\n", plain(f.Next))
	}
	b.WriteString("</ol>\n")
	titled(&b, "Note", t.Notes)
	titled(&b, "Not known", unknownLines(t))
	b.WriteString("</section>\n")
	return b.String()
}

func titled(b *strings.Builder, title string, lines []string) {
	if len(lines) > 0 {
		fmt.Fprintf(b, "<h2>%s</h2>\n", plain(title))
		items(b, lines)
	}
}

func items(b *strings.Builder, lines []string) {
	b.WriteString("<ul>\n")
	for _, line := range lines {
		fmt.Fprintf(b, "<li>%s</li>\n", plain(line))
	}
	b.WriteString("</ul>\n")
}

// plain escapes text for a page.
func plain(text string) string { return output.EscapeHTML(output.Printable(text)) }
