package firefox

import (
	"cmp"
	"strings"

	"goprof/output"
	"goprof/output/recording"
	"goprof/output/timeline"
	"goprof/profile"
)

// maxMarkers bounds the markers of a file, of about 100 bytes each.
const maxMarkers = 1 << 18

// These are the names of the kinds of markers. meta.markerSchema describes how each kind is shown.
const (
	markProcess   = "goprof-mark"
	markState     = "goprof-state"
	markTruncated = "goprof-truncated"
	markThread    = "goprof-thread"
	markRenamed   = "goprof-renamed"
)

type markerField struct {
	Key    string `json:"key"`
	Label  string `json:"label"`
	Format string `json:"format"`
}

type markerKind struct {
	Name         string        `json:"name"`
	TooltipLabel string        `json:"tooltipLabel,omitempty"`
	TableLabel   string        `json:"tableLabel,omitempty"`
	ChartLabel   string        `json:"chartLabel,omitempty"`
	Display      []string      `json:"display"`
	Fields       []markerField `json:"fields"`
	Description  string        `json:"description"`
}

var everywhere = []string{"marker-chart", "marker-table", "timeline-overview"}

var markerSchema = []markerKind{
	{Name: markProcess, TableLabel: "{marker.data.text}", Display: everywhere,
		Fields:      []markerField{{"text", "What", "string"}},
		Description: "What the JVM did, or had its threads wait for."},
	{Name: markState, TableLabel: "{marker.data.what}", Display: everywhere,
		Fields:      []markerField{{"what", "For", "string"}, {"looks", "Looks", "integer"}},
		Description: "What the thread waited for."},
	{Name: markTruncated, TableLabel: "{marker.data.why}", Display: []string{"marker-chart", "marker-table"},
		Fields:      []markerField{{"why", "Why", "string"}, {"looks", "Looks", "integer"}},
		Description: "Stacks whose callers are missing."},
	{Name: markThread, Display: []string{"marker-chart", "marker-table"}, Fields: []markerField{},
		Description: "When the thread was first and last seen in this recording."},
	{Name: markRenamed, TableLabel: "{marker.data.was}", Display: []string{"marker-chart", "marker-table"},
		Fields:      []markerField{{"was", "Name", "string"}},
		Description: "A name that the thread had before."},
}

// marker is a mark on the page, for a time or a span of time.
type marker struct {
	sort     string
	name     int // a string
	at       int64
	end      int64 // equal to at if the mark has no length
	text     string
	looks    int64
	category int
}

type markers struct{ list []marker }

// maxText bounds a marker's text, in bytes. A recording has each text once, and any number of markers may refer to it.
// Here each marker has a copy of its own.
const maxText = 200

// mark adds a marker, if there is room.
func (w *writer) mark(to *markers, m marker) {
	if len(m.text) > maxText {
		m.text = strings.ToValidUTF8(m.text[:maxText], "") + "..."
	}
	if w.markers >= maxMarkers {
		w.omitted++
		return
	}
	w.markers++
	to.list = append(to.list, m)
}

func (w *writer) collectMarks(src recording.Source) error {
	return recording.Marks(src, func(m recording.Mark) error {
		at := w.since(m.At.Wall)
		w.mark(&w.process, marker{sort: markProcess, name: w.strings.index(cmp.Or(m.Kind, "mark")), at: at,
			end: w.plus(at, int64(m.For)), text: m.Text, category: jvm})
		return nil
	})
}

// markStates makes a marker for each time that a thread waited in one way. A track of several threads has none, because
// their markers would overlap.
func (w *writer) markStates(t *viewerThread, tr *timeline.Track) {
	if len(tr.Samples) > 0 {
		first, last := w.since(tr.Samples[0].At), w.since(tr.Samples[len(tr.Samples)-1].At)
		w.mark(&t.marks, marker{sort: markThread, name: w.strings.index("first sample"), at: first, end: first})
		w.mark(&t.marks, marker{sort: markThread, name: w.strings.index("last sample"), at: last, end: last})
		for _, name := range tr.Earlier {
			w.mark(&t.marks, marker{sort: markRenamed, name: w.strings.index("earlier name"), at: first, end: first,
				text: name})
		}
	}
	if tr.Group {
		return
	}
	open := marker{sort: ""}
	for i := range tr.Samples {
		s := &tr.Samples[i]
		if !s.Wall || s.State == profile.Running {
			w.close(t, &open)
			continue
		}
		at := w.since(s.At)
		next := marker{sort: markState, name: w.strings.index(s.State.String()), at: at, end: w.plus(at, s.Span),
			text: w.waitsFor(s), looks: s.Looks, category: max(statePlaces[s.State].category, other)}
		if open.sort != "" && open.name == next.name && open.text == next.text && next.at <= w.plus(open.end, w.slack()) {
			open.end, open.looks = max(open.end, next.end), open.looks+min(next.looks, 1<<40)
			continue
		}
		w.close(t, &open)
		open = next
	}
	w.close(t, &open)
}

// slack is the longest gap between two looks in the same state that still count as one wait.
func (w *writer) slack() int64 { return 2 * min(max(int64(w.t.Info.Meta.Interval), 1e6), 1e9) }

func (w *writer) close(t *viewerThread, m *marker) {
	if m.sort != "" {
		w.mark(&t.marks, *m)
	}
	m.sort = ""
}

// waitsFor returns what the thread waits for (a lock, a file). It is in the state, which is the sample's leaf or the
// frame below the waker.
func (w *writer) waitsFor(s *timeline.Sample) string {
	for n := s.Node; n != 0; n = w.t.Nodes[n].Parent {
		if f := &w.t.Frames[w.t.Nodes[n].Frame]; f.Kind == profile.StateFrame {
			_, what := stateOf(f.Func.Name)
			return what
		}
	}
	return ""
}

// markTruncated makes a marker of each sample with missing callers. Consecutive samples with the same reason share one.
func (w *writer) markTruncated(t *viewerThread, tr *timeline.Track) {
	last := profile.Whole
	for i := range tr.Samples {
		s := &tr.Samples[i]
		if s.Why != profile.Whole {
			if n := len(t.marks.list); last == s.Why && n > 0 && t.marks.list[n-1].sort == markTruncated {
				m := &t.marks.list[n-1]
				m.end, m.looks = w.since(s.At), m.looks+min(s.Looks, 1<<40)
			} else {
				at := w.since(s.At)
				w.mark(&t.marks, marker{sort: markTruncated, name: w.strings.index("truncated stack"), at: at, end: at,
					text: s.Why.String(), looks: s.Looks})
			}
		}
		last = s.Why
	}
}

const (
	phaseInstant  = 0
	phaseInterval = 1
)

func (w *writer) markerTable(m *markers) {
	n := len(m.list)
	w.begin("", n)
	w.Raw(`,"data":`)
	w.List(n, func(i int) { w.payload(&m.list[i]) })
	w.column("name", n, func(i int) int { return m.list[i].name })
	w.Raw(`,"startTime":`)
	w.List(n, func(i int) { w.Ms(m.list[i].at) })
	w.Raw(`,"endTime":`)
	w.List(n, func(i int) {
		if m.list[i].end == m.list[i].at {
			w.Raw("null")
		} else {
			w.Ms(m.list[i].end)
		}
	})
	w.column("phase", n, func(i int) int {
		if m.list[i].end == m.list[i].at {
			return phaseInstant
		}
		return phaseInterval
	})
	w.column("category", n, func(i int) int { return m.list[i].category })
	w.Raw("}")
}

func (w *writer) payload(m *marker) {
	data := map[string]any{"type": m.sort}
	text := output.Printable(m.text)
	switch m.sort {
	case markProcess:
		data["text"] = text
	case markState:
		data["what"], data["looks"] = text, m.looks
	case markRenamed:
		data["was"] = text
	case markTruncated:
		data["why"], data["looks"] = text, m.looks
	}
	w.Any(data)
}
