package redaction

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"goprof/output"
	"goprof/profile/redact"
)

const maxLine = 4 << 20

// rewriteCollapsed writes collapsed stacks again, sorted by their new names: the old order would reveal something about
// the removed names.
func rewriteCollapsed(to io.Writer, from io.Reader, by *redact.Redactor) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	labels := make(map[string]string)
	var out []string
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimRight(lines.Text(), "\r")
		if strings.TrimSpace(line) == "" {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		if at <= 0 || !isCount(line[at+1:]) {
			return &output.BadFile{Line: n, Problem: "it is not \"stack count\""}
		}
		out = append(out, stack(line[:at], labels, by)+line[at:])
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return &output.BadFile{Problem: "a line of more than 4 MiB", TooMuch: true}
	case err != nil:
		return err
	}
	slices.Sort(out)
	w := bufio.NewWriter(to)
	for _, line := range out {
		w.WriteString(line)
		w.WriteByte('\n')
	}
	return w.Flush()
}

func isCount(text string) bool {
	_, err := strconv.ParseFloat(text, 64) // other tools write fractions
	return err == nil
}

// maxKept bounds the remembered labels.
const maxKept = 1 << 18

func stack(text string, known map[string]string, by *redact.Redactor) string {
	frames := strings.Split(text, ";")
	for i, label := range frames {
		made, ok := known[label]
		if !ok {
			if len(known) >= maxKept {
				clear(known)
			}
			made = output.CleanName(by.Label(label))
			known[strings.Clone(label)] = made
		}
		frames[i] = made
	}
	return strings.Join(frames, ";")
}
