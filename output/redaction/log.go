package redaction

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"goprof/output"
	"goprof/profile/redact"
)

// isStacks reports whether most lines at a file's beginning are "stack count".
func isStacks(head []byte) bool {
	if end := bytes.LastIndexByte(head, '\n'); end >= 0 {
		head = head[:end]
	}
	stacks, all := 0, 0
	for line := range bytes.Lines(head) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		all++
		if at := bytes.LastIndexByte(line, ' '); at > 0 && isCount(string(line[at+1:])) {
			stacks++
		}
	}
	return 2*stacks > all
}

// rewriteLog writes a log again, line by line.
func rewriteLog(to io.Writer, from io.Reader, by *redact.Redactor) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	w := bufio.NewWriter(to)
	for lines.Scan() {
		for i, part := range strings.Split(by.Line(lines.Text()), "\t") {
			if i > 0 {
				w.WriteByte('\t')
			}
			w.WriteString(output.Printable(part))
		}
		if err := w.WriteByte('\n'); err != nil {
			return err
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return &output.BadFile{Problem: "a line of more than 4 MiB", TooMuch: true}
	case err != nil:
		return err
	}
	return w.Flush()
}
