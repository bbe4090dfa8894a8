// Package caption describes a recording for pages and tables: a title, one line, and a list of facts.
package caption

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"goprof/output"
	"goprof/output/flame"
	"goprof/output/heat"
	"goprof/output/outfile"
	"goprof/output/recording"
	"goprof/profile"
)

// Mode returns the mode of a recording in words for a title, or "" for the default.
func Mode(m *profile.Meta) string {
	if m.Mode == "" || m.Mode == profile.ModeCPU {
		return ""
	}
	return output.CleanName(m.Mode)
}

func titleOf(input, title string, i *recording.Info) string {
	switch {
	case title != "":
		return title
	case i.Meta.MainClass != "":
		title := output.CleanName(i.Meta.MainClass)
		if mode := Mode(&i.Meta); mode != "" {
			title += ", " + mode
		}
		return title
	case input == outfile.Stdout:
		return "flame graph"
	}
	return filepath.Base(input)
}

// Drawing returns a flame graph's texts about its recording.
func Drawing(version, input, title string, tree *output.Tree, i *recording.Info) flame.Options {
	return flame.Options{Title: titleOf(input, title, i), Source: sourceOf(input),
		Line:  lineOf(output.Amount(tree.Weight, tree.Total), i),
		About: append(about(input, tree, i), [2]string{"drawn by", "goprof " + version})}
}

// Heat returns a heat map's texts about its recording.
func Heat(version, input, title string, i *recording.Info) heat.Options {
	return heat.Options{Title: heatTitle(input, title, i), Source: sourceOf(input), Line: heatLine(i),
		About: heatAbout(version, input, i)}
}

// sourceOf returns the name of the drawn file, or "".
func sourceOf(input string) string {
	if input == outfile.Stdout {
		return ""
	}
	return input
}

// lineOf describes the recording in one line, with its amount. Of a collapsed file without a summary only the amount is
// known.
func lineOf(amount string, i *recording.Info) string {
	facts := []string{amount}
	m := &i.Meta
	if i.Summary != nil || m.Mode != "" {
		mode := cmp.Or(output.CleanName(m.Mode), "cpu")
		facts = append([]string{mode + " mode"}, facts...)
	}
	if m.Duration > 0 {
		facts = append(facts, output.Span(m.Duration))
	}
	if !m.Start.IsZero() {
		facts = append(facts, m.Start.Format("2006-01-02 15:04:05 MST"))
	}
	if m.PID > 0 {
		where := fmt.Sprintf("pid %d", m.PID)
		if m.Host != "" {
			where += " on " + output.CleanName(m.Host)
		}
		facts = append(facts, where)
	}
	if s := i.Summary; s != nil && s.Quality != "" && s.Quality != profile.Good {
		facts = append(facts, "quality "+output.CleanName(string(s.Quality)))
	}
	return strings.Join(facts, " \u00b7 ")
}

func about(input string, tree *output.Tree, i *recording.Info) (facts [][2]string) {
	add := func(name, format string, values ...any) {
		facts = append(facts, [2]string{name, fmt.Sprintf(format, values...)})
	}
	if input != outfile.Stdout {
		add("file", "%s", filepath.Base(input))
	}
	facts = append(facts, recorded(i)...)
	s := i.Summary
	if s != nil {
		add("rate", "%.4g Hz reached, %.4g Hz asked", s.RateReached, s.Rate)
	}
	switch {
	case tree.Weight == profile.Samples:
		add("samples", "%s", output.Grouped(tree.Total))
	case tree.Weight == profile.CPUTime:
		add("CPU time", "%s", output.Amount(tree.Weight, tree.Total))
	case tree.Weight == profile.Bytes:
		add("allocated", "%s", output.Amount(tree.Weight, tree.Total))
	default:
		add("time", "%s", output.Amount(tree.Weight, tree.Total))
	}
	if s != nil && tree.Weight.IsTime() {
		add("samples", "%s", output.Grouped(s.Samples))
	}
	if tree.Unnamed > 0 {
		add("guesses", "in %s which inlined method was running is a guess: these count for the compiled method",
			output.Percent(tree.Unnamed, tree.Total))
	}
	add("stacks", "%s different", output.Grouped(int64(tree.Stacks)))
	add("frames", "%s", output.Grouped(int64(len(tree.Nodes)-1)))
	if s != nil {
		facts = append(facts, accountOf(s)...)
	}
	return facts
}

// recorded returns how the recording was made.
func recorded(i *recording.Info) (facts [][2]string) {
	m := &i.Meta
	add := func(name, text string) {
		if text != "" {
			facts = append(facts, [2]string{name, text})
		}
	}
	add("program", m.MainClass)
	if m.PID > 0 {
		add("pid", strconv.Itoa(m.PID))
	}
	add("host", m.Host)
	add("JVM", m.JVM)
	add("collector", m.Collector)
	if !m.Start.IsZero() {
		add("recorded", fmt.Sprintf("%s, for %s", m.Start.Format(time.RFC3339), output.Span(m.Duration)))
	}
	add("mode", m.Mode)
	add("events", i.Event)
	return facts
}

// accountOf returns the recording's account.
func accountOf(s *profile.Summary) (facts [][2]string) {
	add := func(name, format string, values ...any) {
		facts = append(facts, [2]string{name, fmt.Sprintf(format, values...)})
	}
	if s.Quality != "" && s.Quality != profile.Good {
		why := ""
		if len(s.Doubts) > 0 { // JFR files contain no doubts
			why = ": " + strings.Join(s.Doubts, "; ")
		}
		add("quality", "%s%s", output.CleanName(string(s.Quality)), why)
	}
	add("truncated", "%s (%s)", output.Grouped(s.Truncated), output.Percent(s.Truncated, s.Attempted))
	add("lost", "%s (%s)", output.Grouped(s.Lost), output.Percent(s.Lost, s.Attempted))
	if p := &s.Pauses; p.Count > 0 { // perf's samples and recordings of other tools have no pauses
		add("pauses", "p50 %s, p99 %s, max %s", output.Span(p.P50), output.Span(p.P99), output.Span(p.Max))
	}
	add("goprof's CPU", "%s", output.Span(s.OwnCPU))
	add("recorded by", "goprof %s", s.Meta.Version)
	return facts
}

func heatTitle(input, title string, i *recording.Info) string {
	if title == "" && i.Meta.MainClass == "" && input == outfile.Stdout {
		return "heat map"
	}
	return titleOf(input, title, i)
}

func heatLine(i *recording.Info) string {
	rate := i.Event
	if i.Meta.Interval > 0 {
		rate = fmt.Sprintf("%.4g Hz", i.Meta.Rate())
	}
	return lineOf(cmp.Or(output.CleanName(rate), i.Format), i)
}

// heatAbout returns how the recording was made, and its account.
func heatAbout(version, input string, i *recording.Info) (facts [][2]string) {
	if input != outfile.Stdout {
		facts = append(facts, [2]string{"file", i.Name})
	}
	facts = append(facts, recorded(i)...)
	if s := i.Summary; s != nil {
		facts = append(facts, [2]string{"rate", fmt.Sprintf("%.4g Hz reached, %.4g Hz asked", s.RateReached, s.Rate)})
		facts = append(facts, accountOf(s)...)
		for _, n := range s.Notes {
			facts = append(facts, [2]string{"note", n.Text})
		}
	}
	return append(facts, [2]string{"drawn by", "goprof " + version})
}
