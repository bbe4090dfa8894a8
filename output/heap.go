package output

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"goprof/profile"
)

// HeapShape sets what HeapText shows.
type HeapShape struct {
	// Area is the part of the heap to show: young, old, humongous, profile.HeapLive, or empty for all.
	Area string
	// Top bounds the number of classes, and of arrays, that are shown. 0 is no bound.
	Top int
}

func (s HeapShape) of(h *profile.Heap) *profile.Heap {
	if s.Area == "" {
		return h
	}
	return h.Only(s.Area)
}

type heapReport struct {
	*profile.Heap
	Growth *profile.HeapGrowth `json:"growth,omitempty"`
}

// HeapJSON writes the contents of a heap as JSON. It adds the growth if growth is not nil.
func HeapJSON(to io.Writer, h *profile.Heap, growth *profile.HeapGrowth, shape HeapShape) error {
	if h = shape.of(h); shape.Top > 0 {
		shown := *h
		shown.Classes = h.Classes[:min(len(h.Classes), shape.Top)]
		h = &shown
	}
	return WriteJSON(to, heapReport{h, growth})
}

// HeapText writes the contents of a heap, for people.
func HeapText(to io.Writer, h *profile.Heap, shape HeapShape) error {
	w := &heapText{Writer: bufio.NewWriter(to), h: shape.of(h), all: h, top: shape.Top}
	w.head()
	w.classes()
	w.lengths()
	w.largest()
	return w.Flush()
}

type heapText struct {
	*bufio.Writer
	h   *profile.Heap // what is shown
	all *profile.Heap
	top int
}

// head writes whose heap it is, how much of it was read, and what could not be counted.
func (w *heapText) head() {
	h := w.all
	limit := ""
	if h.Capacity > 0 {
		limit = " of " + Size(h.Capacity)
	}
	name := CleanName(cmp.Or(h.MainClass, "the heap"))
	fmt.Fprintf(w, "%s (pid %d, %s): %s%s used; %s read in %v\n", name, h.PID, h.Collector, Size(h.Used()), limit,
		Size(h.Copied), Round(h.Took))
	unseen := 0.0
	for i := range h.Parts {
		p := &h.Parts[i]
		fmt.Fprintf(w, "  %-9s  %10s", p.Name, Size(p.Used))
		switch {
		case p.Moved:
			fmt.Fprintf(w, "  %s looked at, in %d pieces; it was collected meanwhile", Size(p.Seen), p.Units)
		case p.Units > 0:
			fmt.Fprintf(w, "  %s looked at, in %d pieces drawn by lot", percentOf(int64(p.Seen), int64(p.Used)), p.Units)
		case p.Seen < p.Used:
			fmt.Fprintf(w, "  %s looked at", percentOf(int64(p.Seen), int64(p.Used)))
		default:
			fmt.Fprint(w, "  all looked at")
		}
		if text := unreadText(p.Unread); text != "" {
			fmt.Fprintf(w, "; not counted: %s", text)
		}
		if p.Name == "old" && h.Swept != nil {
			fmt.Fprintf(w, "; without what was dead %v ago", Round(*h.Swept))
		}
		fmt.Fprintln(w)
		unseen = max(unseen, p.Unseen)
	}
	if unseen >= 1 {
		fmt.Fprintf(w, "  a class that is not named, or has nothing in a part, may have up to %s objects in it\n",
			grouped(unseen))
	}
	for _, note := range h.Notes {
		fmt.Fprintf(w, "  note: %s\n", Printable(note))
	}
}

// unreadText lists what was not counted, by reason.
func unreadText(u profile.HeapUnread) string {
	var parts []string
	for _, r := range []struct {
		bytes uint64
		what  string
	}{
		{u.Buffers, "of threads for objects to come"},
		{u.Making, "of objects that are not whole"},
		{u.Moving, "that the collector moved meanwhile"},
		{u.Unknown, "without a known class"},
		{u.Memory, "of memory that could not be read"},
	} {
		if r.bytes > 0 {
			parts = append(parts, Size(r.bytes)+" "+r.what)
		}
	}
	return strings.Join(parts, ", ")
}

func (w *heapText) classes() {
	rows := make([]*profile.HeapClass, 0, len(w.h.Classes))
	for _, c := range w.h.Classes {
		if !c.Filler {
			rows = append(rows, c)
		}
	}
	old := w.h.Part("old") != nil && len(w.h.Parts) > 1
	fmt.Fprintf(w, "\n%14s  %11s  %7s", "objects", "bytes", "share")
	if w.h.Sampled() {
		fmt.Fprintf(w, "  %7s", "+-")
	}
	if old {
		fmt.Fprintf(w, "  %7s", "in old")
	}
	fmt.Fprintf(w, "  class\n")
	used := float64(w.h.Used())
	for _, c := range rows[:min(len(rows), w.top)] {
		fmt.Fprintf(w, "%14s  %11s  %7s", grouped(c.Objects), Size(uint64(c.Bytes)), shareText(c.Bytes, used))
		if w.h.Sampled() {
			fmt.Fprintf(w, "  %7s", shareText(c.BytesError, used))
		}
		if old {
			fmt.Fprintf(w, "  %7s", shareText(c.Parts["old"].Bytes+c.Parts["humongous"].Bytes, c.Bytes))
		}
		fmt.Fprintf(w, "  %s%s\n", CleanName(c.Name), loaderText(c.Loader))
	}
	if more := len(rows) - w.top; more > 0 {
		rest := profile.HeapAmount{}
		for _, c := range rows[w.top:] {
			rest.Objects, rest.Bytes = rest.Objects+c.Objects, rest.Bytes+c.Bytes
		}
		fmt.Fprintf(w, "%14s  %11s  %7s", grouped(rest.Objects), Size(uint64(rest.Bytes)), shareText(rest.Bytes, used))
		if w.h.Sampled() {
			fmt.Fprintf(w, "  %7s", "")
		}
		if old {
			fmt.Fprintf(w, "  %7s", "")
		}
		fmt.Fprintf(w, "  %d more classes (--top)\n", more)
	}
}

const (
	// shownArrays bounds the classes of arrays that are shown by length. leastArrays is the least share of such a class.
	shownArrays = 4
	leastArrays = 0.02
)

// lengths writes the lengths of arrays in the largest array classes.
func (w *heapText) lengths() {
	shown := 0
	for i := range w.h.Classes {
		c := w.h.Classes[i]
		if len(c.Lengths) < 2 || c.Filler || c.Bytes < leastArrays*float64(w.h.Used()) || shown == shownArrays {
			continue
		}
		if shown++; shown == 1 {
			fmt.Fprintf(w, "\nArrays by length\n")
		}
		fmt.Fprintf(w, "  %s\n", CleanName(c.Name))
		for _, l := range c.Lengths {
			if l.Bytes >= leastArrays*c.Bytes {
				fmt.Fprintf(w, "%14s  %11s  %7s  %s\n", grouped(l.Objects), Size(uint64(l.Bytes)), shareText(l.Bytes, c.Bytes),
					lengthText(l.From, l.To))
			}
		}
	}
}

func lengthText(from, to uint64) string {
	if from >= to {
		return fmt.Sprintf("length %d", to)
	}
	return fmt.Sprintf("length %d to %d", from, to)
}

// leastArray is the least size of an array that has a line of its own.
const leastArray = 64 << 10

func (w *heapText) largest() {
	shown := 0
	for _, a := range w.h.Largest {
		if a.Bytes < leastArray || shown == min(w.top, 10) {
			continue
		}
		if shown++; shown == 1 {
			title := "Largest arrays"
			if w.h.Sampled() {
				title += " that were met"
			}
			fmt.Fprintf(w, "\n%s\n", title)
		}
		fmt.Fprintf(w, "%14s  %s of length %d, in %s\n", Size(a.Bytes), CleanName(a.Class), a.Length, a.Part)
	}
}

// HeapGrowthTitle is the title of the table of growth: its time and the number of readings.
func HeapGrowthTitle(g *profile.HeapGrowth) string {
	return fmt.Sprintf("Growth over %v, %d readings", Round(g.Over), g.Readings)
}

// HeapGrowthClaims returns sentences on how the whole part grew, and how reliable the growth of classes is.
func HeapGrowthClaims(g *profile.HeapGrowth) (claims []string) {
	part := "The old generation"
	if g.Part != "old" {
		part = "The heap"
	}
	switch {
	case g.Used.Rate > g.Used.Error && g.Used.Rate > 0 && g.Full > 0:
		claims = append(claims, fmt.Sprintf("%s grows by %s: it will be full in about %v.", part, rateText(g.Used),
			Round(g.Full)))
	case g.Used.Rate > g.Used.Error && g.Used.Rate > 0:
		claims = append(claims, fmt.Sprintf("%s grows by %s.", part, rateText(g.Used)))
	default:
		claims = append(claims, fmt.Sprintf("%s does not grow for certain (%s).", part, rateText(g.Used)))
	}
	switch {
	case len(g.Classes) == 0:
		claims = append(claims, "No class grew for certain.")
	case g.Uncounted:
		claims = append(claims, "This JVM does not count its collections: what grew may be garbage.")
	case !g.Collected:
		claims = append(claims, "It was not collected meanwhile: what grew may be garbage. Look for longer, past a "+
			"collection.")
	}
	return claims
}

// HeapGrowthText writes the growth by class.
func HeapGrowthText(to io.Writer, g *profile.HeapGrowth, top int) error {
	w := bufio.NewWriter(to)
	fmt.Fprintf(w, "\n%s\n", HeapGrowthTitle(g))
	for _, claim := range HeapGrowthClaims(g) {
		fmt.Fprintf(w, "  %s\n", claim)
	}
	if len(g.Classes) == 0 {
		return w.Flush()
	}
	fmt.Fprintf(w, "\n%14s  %11s  %11s  %11s  class\n", "a second", "+-", "from", "to")
	for _, c := range g.Classes[:min(len(g.Classes), top)] {
		fmt.Fprintf(w, "%14s  %11s  %11s  %11s  %s%s\n", Size(uint64(c.Bytes.Rate)), Size(uint64(c.Bytes.Error)),
			Size(uint64(c.From)), Size(uint64(c.To)), CleanName(c.Name), loaderText(c.Loader))
	}
	return w.Flush()
}

func rateText(s profile.HeapSlope) string {
	sign, rate := "", s.Rate
	if rate < 0 {
		sign, rate = "-", -rate
	}
	return fmt.Sprintf("%s%s +- %s a second", sign, Size(uint64(rate)), Size(uint64(s.Error)))
}

func loaderText(loader string) string {
	if loader == "" {
		return ""
	}
	return "  (" + CleanName(loader) + ")"
}

// grouped is Grouped for an estimated number of objects.
func grouped(n float64) string { return Grouped(int64(math.RoundToEven(n))) }

func shareText(n, of float64) string {
	if of <= 0 {
		return "-"
	}
	return strconv.FormatFloat(100*n/of, 'f', 1, 64) + " %"
}
