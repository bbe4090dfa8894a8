package heat

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"goprof/output"
	"goprof/output/diff"
	"goprof/output/recording"
)

// maxRows bounds the changes that are told of one moment.
const maxRows = 4

// Told is what Text needs to name a recording.
type Told struct {
	Name  string        // as commands take it, with the flags that choose samples; "": no command can read it again
	After time.Duration // src begins so much later than the recording
}

// Text writes the moments at which a recording changes, as text.
func Text(to io.Writer, src recording.Source, of Told) error {
	moments, length, err := Changes(src)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(to)
	if len(moments) == 0 {
		fmt.Fprintf(w, "No change in %s beyond noise.\n", output.Round(length))
	}
	for i := range moments {
		m := &moments[i]
		fmt.Fprintf(w, "from %s (%s) on:", m.At.Round(time.Second).Local().Format(time.TimeOnly),
			output.Round(of.After+m.From))
		rows := rowsOf(m.Changes)
		for n, r := range rows[:min(len(rows), maxRows)] {
			if n > 0 {
				w.WriteString("\n   ")
			}
			fmt.Fprintf(w, " %+.1f points  %s  (%.1f -> %.1f %%)", 100*r.ch.Change, output.CleanName(r.place), 100*r.ch.Before,
				100*r.ch.After)
		}
		if more := len(rows) - maxRows; more > 0 {
			fmt.Fprintf(w, "\n    and %d more", more)
		}
		w.WriteString("\n")
	}
	if len(moments) > 0 && of.Name != "" {
		after, next := of.After+moments[0].From, ""
		if len(moments) > 1 {
			next = rangeText(of.After + moments[1].From)
		}
		fmt.Fprintf(w, "\nThe shares of %s: goprof diff %s --before %s-%s --after %s-%s\n", output.Round(length),
			output.Printable(of.Name), rangeText(of.After), rangeText(after), rangeText(after), next)
	}
	return w.Flush()
}

// rangeText is a moment as --before and --after take it.
func rangeText(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }

// changeRow is what changes in one of the program's own methods.
type changeRow struct {
	ch    diff.Change
	place string
}

// mostOf is the part of a method's change from which on a callee or state is named.
const mostOf = 0.5

// rowsOf returns a row for each method and direction, with the largest change. A change within the method that makes up
// most of that change is named, too.
func rowsOf(changes []diff.Change) (rows []changeRow) {
	type key struct {
		method string
		more   bool
	}
	at := map[key]int{}
	for _, ch := range changes {
		method := cmp.Or(ch.Own, ch.Name)
		k := key{method, ch.Change > 0}
		i, met := at[k]
		if !met {
			i = len(rows)
			at[k] = i
			rows = append(rows, changeRow{ch, method})
		}
		if r := &rows[i]; r.place == method && ch.Name != method && math.Abs(ch.Change) >= mostOf*math.Abs(r.ch.Change) {
			r.place += ", " + doing(ch.Name)
		}
	}
	return rows
}

// doing says what a frame below a program's own method does: a state, or a method of the library.
func doing(frame string) string {
	if state, is := strings.CutPrefix(frame, "["); is {
		return strings.TrimSuffix(state, "]")
	}
	return "in " + frame
}
