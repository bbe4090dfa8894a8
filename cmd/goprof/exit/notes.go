package exit

import (
	"fmt"
	"io"

	"goprof/output"
	"goprof/profile"
)

// Doubts are the doubts about JVMs that this run has already shown. Each is shown once.
type Doubts map[string]bool

// Warn shows the sentences that were not shown yet.
func (d Doubts) Warn(w io.Writer, sentences []string) {
	for _, s := range sentences {
		if !d[s] {
			d[s] = true
			fmt.Fprintf(w, "goprof: %s\n", output.Printable(s))
		}
	}
}

// TellNotes shows notes about a successful run.
func TellNotes(talk io.Writer, notes []profile.Note) {
	for _, n := range notes {
		fmt.Fprintf(talk, "goprof: %s: %s\n", n.Name, output.Printable(n.Text))
		if n.Remedy != "" {
			fmt.Fprintf(talk, "try: %s\n", output.Printable(n.Remedy))
		}
	}
}
