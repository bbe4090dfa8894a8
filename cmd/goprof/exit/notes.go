package main

import (
	"fmt"
	"io"

	"goprof/output"
)

// doubts are the doubts about JVMs that a run has told already. Each kind is told once.
type doubts map[string]bool

func (d doubts) warn(w io.Writer, sentences []string) {
	for _, s := range sentences {
		if !d[s] {
			d[s] = true
			fmt.Fprintf(w, "goprof: %s\n", output.Printable(s))
		}
	}
}
