package diff

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"

	"goprof/output"
)

// JSON writes the result with the field names of Result.
func (r *Result) JSON(to io.Writer) error { return output.WriteJSON(to, r) }

// Text writes the result as tables, with sentences about their reliability.
func (r *Result) Text(to io.Writer) error {
	w := bufio.NewWriter(to)
	fmt.Fprintf(w, "before  %s\nafter   %s\n\n", r.Before.line(r), r.After.line(r))
	w.WriteString(r.Verdict() + "\n" + r.method() + "\n")
	for _, sort := range []string{OfSelf, OfTotal, OfPath} {
		r.table(w, sort)
	}
	if r.Omitted > 0 {
		fmt.Fprintf(w, "\nand %d more: --top 0 shows all\n", r.Omitted)
	}
	return w.Flush()
}

func (rec *Recording) line(r *Result) string {
	line := fmt.Sprintf("%s: %s", output.CleanName(rec.Name), output.Amount(r.Weight, rec.Total))
	if r.Weight.IsTime() {
		line += fmt.Sprintf(", %d samples", rec.Looks)
	}
	if rec.Span > 0 {
		line += fmt.Sprintf(" in %s", output.Round(rec.Span))
	} else if rec.Blocks == 0 {
		line += ", no times"
	}
	if rec.Guessed > 0 {
		line += fmt.Sprintf("; in %s which inlined method was running is a guess", output.Percent(rec.Guessed, rec.Total))
	}
	return line
}

// Verdict returns the result in a sentence or two.
func (r *Result) Verdict() string {
	largest := r.largest()
	switch {
	case r.Significant > 0:
		return fmt.Sprintf("%s significant: noise alone should give any such change in less than %.0f of 100 comparisons.",
			plural(r.Significant, "change is", "changes are"), 100*Risk)
	case r.Likely > 0:
		return r.likelyVerdict()
	case r.Unsettled > 0:
		return fmt.Sprintf("No change is likely. %s more than noise within the recordings makes (~), but starts of one "+
			"program usually differ by as much.", plural(r.Unsettled, "is", "are"))
	case largest == nil:
		return "No significant change."
	case largest.Usual > 0:
		return fmt.Sprintf("No change is likely. The largest is %s points in %s, where starts of one program usually "+
			"differ by up to %.1f points.", points(largest.Change), output.CleanName(largest.Name), 100*largest.Usual)
	}
	return fmt.Sprintf("No significant change. The largest is %s points in %s, where noise alone would give changes of "+
		"up to %s points.", points(largest.Change), output.CleanName(largest.Name),
		strings.TrimPrefix(points(largest.Noise), "+"))
}

// largest returns the largest change that noise explains.
func (r *Result) largest() *Change {
	var most *Change
	for i := range r.Changes {
		if ch := &r.Changes[i]; most == nil || math.Abs(ch.Change) > math.Abs(most.Change) {
			most = ch
		}
	}
	return most
}

// method explains how the figures were computed.
func (r *Result) method() string {
	how := fmt.Sprintf("Noise is measured by how shares change within the recordings: %.1f times that of independent "+
		"samples.", r.Inflation)
	if r.Assumed {
		how = fmt.Sprintf("Neither recording has times, so noise is not measured: %.1f times that of independent samples "+
			"was assumed.", Assumed)
	}
	return fmt.Sprintf("%s Corrected for %s (Holm).\n%s", how, plural(r.Compared, "comparison", "comparisons"),
		r.betweenStarts())
}

// betweenStarts explains how much is known about the noise between recordings.
func (r *Result) betweenStarts() string {
	several := len(r.Before.Files) > 1 || len(r.After.Files) > 1
	switch {
	case r.Starts == OneJVM && several:
		return "All recordings are of one JVM. Noise between them is measured."
	case r.Starts == OneJVM:
		return "Both are of one JVM, so no start differs from the next."
	case !r.c.tooFew():
		return fmt.Sprintf("Noise between recordings is measured, by %d before and %d after.", len(r.Before.Files),
			len(r.After.Files))
	}
	they := "They are of two starts of a JVM"
	switch {
	case several:
		they = "They are of several starts of a JVM"
	case r.Starts == MaybeOther:
		they = "They may be of two starts of a JVM"
	}
	return they + fmt.Sprintf(". These differ by more than noise. By how much, fewer than three recordings a side "+
		"cannot\ntell; \"starts\" is what two starts of one program usually differ by, measured over %d programs.\n"+
		"Three recordings a side prove a change, five are best: goprof diff before*.jfr -- after*.jfr", usualPrograms)
}

func (r *Result) table(w *bufio.Writer, sort string) {
	titles := map[string]string{OfSelf: r.By + ", self", OfTotal: r.By + ", total", OfPath: "path"}
	first := true
	for i := range r.Changes {
		ch := &r.Changes[i]
		if ch.Of != sort {
			continue
		}
		if first {
			last, width := "p", 4
			if ch.Usual > 0 {
				last, width = "starts", 11
			}
			fmt.Fprintf(w, "\n%8s %8s %8s %8s %8s  %-*s %s\n", "before", "after", "change", "noise", last, width, "",
				titles[sort])
			first = false
		}
		noise, last, width := ch.Noise, chance(ch.P), 4
		if ch.Usual > 0 { // p is for a proof, which so few recordings cannot give
			noise, last, width = ch.Within, either(ch.Usual), 11
		}
		fmt.Fprintf(w, "%8s %8s %8s %8s %8s  %-*s %s\n", share(ch.Before), share(ch.After), points(ch.Change),
			either(noise), last, width, ch.mark(), ch.where())
	}
}

// either formats a change in either direction.
func either(of float64) string { return "±" + strings.TrimPrefix(points(of), "+") }

// mark returns a star for a significant change, "likely" for a likely one, ~ for a change that may be a difference
// between starts, and "new" or "gone" for a key that only one side has.
func (ch *Change) mark() string {
	mark := " "
	switch {
	case ch.Significant:
		mark = "*"
	case ch.Likely:
		mark = "likely "
	case ch.Differs:
		mark = "~"
	}
	switch {
	case ch.New:
		mark += "new"
	case ch.Gone:
		mark += "gone"
	}
	return mark
}

// shownPath is how many frames at the end of a path are shown.
const shownPath = 4

// where returns a name, or the end of a path.
func (ch *Change) where() string {
	if ch.Of != OfPath {
		return output.CleanName(ch.Name)
	}
	path, before := ch.Path, ""
	if len(path) > shownPath {
		path, before = path[len(path)-shownPath:], "… "
	}
	names := make([]string, len(path))
	for i, name := range path {
		names[i] = output.CleanName(name)
	}
	return before + strings.Join(names, " > ")
}

func share(of float64) string { return fmt.Sprintf("%.2f%%", 100*of) }

func points(of float64) string { return fmt.Sprintf("%+.2f", 100*of) }

func chance(p float64) string {
	switch {
	case p < 0.001:
		return "<0.001"
	case p > 0.99:
		return "1"
	}
	return fmt.Sprintf("%.3f", p)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
