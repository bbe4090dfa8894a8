package main

import (
	"fmt"
	"io"

	"goprof/output"
)

// doubts are those about JVMs that a run has told already: of several of one kind once is enough.
type doubts map[string]bool

func (d doubts) warn(w io.Writer, sentences []string) {
	for _, s := range sentences {
		if !d[s] {
			d[s] = true
			fmt.Fprintf(w, "goprof: %s\n", output.Printable(s))
		}
	}
}
