package top

import (
	"bufio"
	"io"
)

const tableColumns = 160

// Text writes a reading as a table: the contents of a screen that is high enough for everything.
func Text(to io.Writer, r *Reading) error {
	m := New()
	m.Show(r)
	lines := append(m.head(tableColumns, bothFrom), nil)
	lines = append(lines, m.threadTable(tableColumns, len(m.threads)+1)...)
	lines = append(lines, nil)
	lines = append(lines, m.methodTable(tableColumns, max(len(m.methods), 1)+1)...)
	w := bufio.NewWriter(to)
	for _, line := range lines {
		w.WriteString(line.cut(tableColumns).Text())
		w.WriteByte('\n')
	}
	return w.Flush()
}
