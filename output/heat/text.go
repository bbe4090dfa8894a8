package heat

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"

	"goprof/output"
	"goprof/output/diff"
	"goprof/output/recording"
)

// maxRows bounds the changes that are told of one moment.
const maxRows = 4

// Text writes the moments at which a recording changes, as text. Name is the recording's, as a command takes it.
func Text(to io.Writer, src recording.Source, name string) error {
	moments, length, err := Changes(src)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(to)
	if len(moments) == 0 {
		fmt.Fprintf(w, "No change in %s: noise explains how shares differ over the time.\n", output.Round(length))
	}
	for i := range moments {
		m := &moments[i]
		fmt.Fprintf(w, "from %s (%s) on:", m.At.Local().Format(time.TimeOnly), output.Round(m.From))
		for n, ch := range m.Changes[:min(len(m.Changes), maxRows)] {
			if n > 0 {
				w.WriteString("\n   ")
			}
			fmt.Fprintf(w, " %+.1f points  %s  (%.1f -> %.1f %%)", 100*ch.Change, place(&ch), 100*ch.Before, 100*ch.After)
		}
		if more := len(m.Changes) - maxRows; more > 0 {
			fmt.Fprintf(w, "\n    and %d more", more)
		}
		w.WriteString("\n")
	}
	if len(moments) > 0 {
		before, after, next := time.Duration(0), moments[0].From, ""
		if len(moments) > 1 {
			next = rangeText(moments[1].From)
		}
		fmt.Fprintf(w, "\nThe shares of %s: goprof diff %s --before %s-%s --after %s-%s\n", output.Round(length), name,
			rangeText(before), rangeText(after), rangeText(after), next)
	}
	return w.Flush()
}

// rangeText is a moment as --before and --after take it.
func rangeText(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }

// place names a change: the innermost method of the program's own, and what the thread does in there.
func place(ch *diff.Change) string {
	if ch.Own == "" || ch.Own == ch.Name {
		return output.CleanName(ch.Name)
	}
	return output.CleanName(ch.Own) + ", " + output.CleanName(doing(ch.Name))
}

// doing says what a frame below a program's own method does: a state, or a method of the library.
func doing(frame string) string {
	if state, is := strings.CutPrefix(frame, "["); is {
		return strings.TrimSuffix(state, "]")
	}
	return "in " + frame
}
