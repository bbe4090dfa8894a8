//go:build linux

package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"goprof/testdata/jvmtest"
)

// matrixTable is what came of it: by JDK and way "stops complete mismatches".
type matrixTable struct {
	jdks  []jvmtest.JDK
	cells map[[2]string]string
	notes []string
}

func (m *matrixTable) set(jdk jvmtest.JDK, row, cell string) {
	m.cells[[2]string{jdk.Home, row}] = cell
}

// String is the table in Markdown, and what it leaves out.
func (m *matrixTable) String() string {
	var b strings.Builder
	head, rule := "| stops complete mismatches |", "|---|"
	for _, jdk := range m.jdks {
		head += fmt.Sprintf(" %s %s |", cmp.Or(jdk.Label, "Debian"), jdk.Release)
		rule += "---|"
	}
	fmt.Fprintf(&b, "%s\n%s\n", head, rule)
	for _, row := range append(slices.Clone(matrixRows), matrixRow{name: matrixJavac}) {
		line, ran := "| "+row.name+" |", false
		for _, jdk := range m.jdks {
			cell := m.cells[[2]string{jdk.Home, row.name}]
			ran = ran || cell != ""
			line += " " + cell + " |"
		}
		if ran {
			fmt.Fprintln(&b, line)
		}
	}
	fmt.Fprint(&b, "\nn/a, in the words of java:\n\n")
	for _, note := range m.notes {
		fmt.Fprintln(&b, "- "+note)
	}
	return b.String()
}
