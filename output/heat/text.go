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

// maxRows bounds the changes that are listed for one time.
const maxRows = 4

// Told is what Text needs to name a recording.
type Told struct {
	Name  string        // as commands take it, with the flags that choose samples; "": no command can read it again
	After time.Duration // how much later src begins than the recording
}

// Text writes the times at which a recording changes, as text.
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

// rangeText returns a time as --before and --after take it.
func rangeText(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }

// changeRow is the change in one of the program's own methods.
type changeRow struct {
	ch    diff.Change
	place string
}

// mostOf: a callee or state is named if it has at least this part of a method's change.
const mostOf = 0.5

// rowsOf returns a row for each method and direction, with the largest change. If a change within the method makes up
// most of that change, the row names it, too.
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

// doing describes a frame below a program's own method: a state, or a method of the library.
func doing(frame string) string {
	if state, is := strings.CutPrefix(frame, "["); is {
		return strings.TrimSuffix(state, "]")
	}
	return "in " + frame
}
