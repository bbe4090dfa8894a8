package firefox

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"goprof/output"
)

// file is the format as the viewer itself describes it (src/types/profile.ts, version 66). It shares no code with the
// writer, on purpose.
type file struct {
	Meta struct {
		Version, PreprocessedProfileVersion, ProcessType, Stackwalk int
		Interval, StartTime, ProfilingStartTime, ProfilingEndTime   float64
		Product                                                     string
		Symbolicated                                                bool
		Categories                                                  []struct {
			Name, Color   string
			Subcategories []string
		}
		MarkerSchema []struct {
			Name    string
			Display []string
			Fields  []struct{ Key, Label, Format string }
		}
		SampleUnits struct{ Time, EventDelay, ThreadCPUDelta string }
		Extra       []struct {
			Label   string
			Entries []struct{ Label, Format, Value string }
		}
		InitialVisibleThreads, InitialSelectedThreads []int
	}
	Libs []struct {
		Arch, Name, Path, DebugName, DebugPath, BreakpadID string
		CodeID                                             *string
	}
	Shared struct {
		StackTable struct {
			Frame, PrefixOffset []int
			Length              int
		}
		FrameTable struct {
			Address, InlineDepth, Func []int
			Category, Subcategory      []*int
			NativeSymbol, Column, Line []*int
			InnerWindowID              []int
			OriginalLocation           []*int
			Length                     int
		}
		FuncTable struct {
			Name, Resource                                     []int
			IsJS, RelevantForJS                                []bool
			Source, LineNumber, ColumnNumber, OriginalLocation []*int
			Length                                             int
		}
		ResourceTable struct {
			Name, Type, Lib []int
			Host            []*int
			Length          int
		}
		NativeSymbols struct {
			LibIndex, Address, Name, FunctionSize []int
			Length                                int
		}
		Sources struct {
			ID, SourceMapURL, Content        []*string
			Filename, StartLine, StartColumn []int
			Length                           int
		}
		SourceLocationTable struct {
			Source, Line, Column []int
			Length               int
		}
		StringArray []string
	}
	Threads []fileThread
}

type fileThread struct {
	ProcessType, Name, ProcessName, PID string
	TID                                 json.RawMessage
	IsMainThread                        bool
	RegisterTime, ProcessStartupTime    *float64
	UnregisterTime, ProcessShutdownTime *float64
	PausedRanges                        []any
	Samples                             struct {
		Stack          []*int
		Time, Weight   []float64
		WeightType     string
		ThreadCPUDelta []*int64
		Length         int
	}
	Markers struct {
		Data                  []map[string]any
		Name, Phase, Category []int
		StartTime, EndTime    []*float64
		Length                int
	}
}

// checker checks what profiler-cli does not check: every index has an entry, every column is as long as its table,
// every time lies within the recording.
type checker struct {
	*testing.T
	f *file
}

func checked(t *testing.T, data []byte) *file {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.ContainsAny(text, "<>") {
		t.Error("a character that can end a script")
	}
	f := new(file)
	if err := json.Unmarshal(text, f); err != nil {
		t.Fatalf("%v in %.300s", err, text)
	}
	c := checker{t, f}
	c.meta()
	c.tables()
	tids := make(map[string]bool)
	for i := range f.Threads {
		th := &f.Threads[i]
		if tids[string(th.TID)] {
			t.Errorf("tid %s twice", th.TID)
		}
		tids[string(th.TID)] = true
		c.thread(th)
	}
	return f
}

func (c *checker) meta() {
	m := &c.f.Meta
	if m.PreprocessedProfileVersion != 66 || m.Version != 24 || m.Interval <= 0 || m.Product == "" || !m.Symbolicated {
		c.Errorf("meta: %+v", m)
	}
	colors := strings.Fields("transparent purple green orange yellow lightblue blue brown magenta red lightred " +
		"darkgrey grey")
	grey := 0
	for _, cat := range m.Categories {
		if !slices.Contains(colors, cat.Color) || len(cat.Subcategories) == 0 || cat.Subcategories[0] != "Other" {
			c.Errorf("category %+v", cat)
		}
		if cat.Color == "grey" {
			grey++
		}
	}
	if grey == 0 {
		c.Error("no default category")
	}
	c.indices("visible threads", m.InitialVisibleThreads, len(c.f.Threads))
	c.indices("selected threads", m.InitialSelectedThreads, len(c.f.Threads))
	for _, s := range c.f.Shared.StringArray {
		if strings.ContainsFunc(s, output.Unsafe) {
			c.Errorf("string %q", s)
		}
	}
}

func (c *checker) lengths(table string, want int, got ...int) {
	c.Helper()
	for i, n := range got {
		if n != want {
			c.Errorf("%s of %d rows: column %d has %d", table, want, i, n)
		}
	}
}

func (c *checker) indices(what string, all []int, below int) {
	c.Helper()
	for _, i := range all {
		if i < 0 || i >= below {
			c.Fatalf("%s: index %d of %d", what, i, below)
		}
	}
}

func (c *checker) maybe(what string, all []*int, below int) {
	c.Helper()
	for _, i := range all {
		if i != nil && (*i < 0 || *i >= below) {
			c.Fatalf("%s: index %d of %d", what, *i, below)
		}
	}
}

func (c *checker) tables() {
	s := &c.f.Shared
	st, fr, fn, rs, src := &s.StackTable, &s.FrameTable, &s.FuncTable, &s.ResourceTable, &s.Sources
	c.lengths("stacks", st.Length, len(st.Frame), len(st.PrefixOffset))
	c.indices("frame of stack", st.Frame, fr.Length)
	for i, off := range st.PrefixOffset {
		if off < 0 || off > i {
			c.Fatalf("stack %d has its parent %d before it", i, off)
		}
	}
	c.lengths("frames", fr.Length, len(fr.Address), len(fr.InlineDepth), len(fr.Func), len(fr.Category),
		len(fr.Subcategory),
		len(fr.NativeSymbol), len(fr.Column), len(fr.Line), len(fr.InnerWindowID), len(fr.OriginalLocation))
	c.indices("func of frame", fr.Func, fn.Length)
	c.maybe("category of frame", fr.Category, len(c.f.Meta.Categories))
	for i, sub := range fr.Subcategory {
		if (sub == nil) != (fr.Category[i] == nil) || sub != nil &&
			*sub >= len(c.f.Meta.Categories[*fr.Category[i]].Subcategories) {
			c.Errorf("subcategory of frame %d", i)
		}
		if fr.InlineDepth[i] < 0 || fr.Address[i] < -1 || fr.Line[i] != nil && *fr.Line[i] <= 0 {
			c.Errorf("frame %d", i)
		}
	}
	c.maybe("symbol", fr.NativeSymbol, s.NativeSymbols.Length)
	c.lengths("funcs", fn.Length, len(fn.Name), len(fn.Resource), len(fn.IsJS), len(fn.RelevantForJS), len(fn.Source),
		len(fn.LineNumber), len(fn.ColumnNumber), len(fn.OriginalLocation))
	c.indices("name of func", fn.Name, len(s.StringArray))
	c.maybe("source", fn.Source, src.Length)
	for _, r := range fn.Resource {
		if r < -1 || r >= rs.Length {
			c.Errorf("resource %d of %d", r, rs.Length)
		}
	}
	c.lengths("resources", rs.Length, len(rs.Name), len(rs.Type), len(rs.Lib), len(rs.Host))
	c.indices("name of resource", rs.Name, len(s.StringArray))
	c.indices("lib of resource", rs.Lib, len(c.f.Libs))
	c.lengths("sources", src.Length, len(src.ID), len(src.SourceMapURL), len(src.Content), len(src.Filename),
		len(src.StartLine),
		len(src.StartColumn))
	c.indices("name of source", src.Filename, len(s.StringArray))
	c.lengths("symbols", 0, s.NativeSymbols.Length, len(s.NativeSymbols.Name), s.SourceLocationTable.Length)
}

func (c *checker) thread(th *fileThread) {
	s, m := &th.Samples, &th.Markers
	c.lengths("samples", s.Length, len(s.Stack), len(s.Time), len(s.Weight), len(s.ThreadCPUDelta))
	c.maybe("stack of sample", s.Stack, c.f.Shared.StackTable.Length)
	for i, at := range s.Time {
		if at < 0 || at > c.f.Meta.ProfilingEndTime || i > 0 && at < s.Time[i-1] {
			c.Errorf("%s: sample %d at %v of %v", th.Name, i, at, c.f.Meta.ProfilingEndTime)
		}
		if s.Weight[i] < 0 || s.ThreadCPUDelta[i] != nil && *s.ThreadCPUDelta[i] < 0 {
			c.Errorf("%s: sample %d weighs %v", th.Name, i, s.Weight[i])
		}
	}
	if th.Name == "" || th.PID == "" || th.RegisterTime == nil || th.ProcessStartupTime == nil || th.PausedRanges == nil {
		c.Errorf("thread %+v", th)
	}
	c.lengths("markers", m.Length, len(m.Data), len(m.Name), len(m.Phase), len(m.Category), len(m.StartTime),
		len(m.EndTime))
	c.indices("name of marker", m.Name, len(c.f.Shared.StringArray))
	c.indices("category of marker", m.Category, len(c.f.Meta.Categories))
	for i := range m.Length {
		c.marker(th, i)
	}
}

func (c *checker) marker(th *fileThread, i int) {
	m := &th.Markers
	from, to := m.StartTime[i], m.EndTime[i]
	ok := from != nil && *from >= 0 && *from <= c.f.Meta.ProfilingEndTime
	switch m.Phase[i] {
	case 0:
	case 1:
		ok = ok && to != nil && *to >= *from && *to <= c.f.Meta.ProfilingEndTime
	default:
		ok = false
	}
	known := false
	for _, s := range c.f.Meta.MarkerSchema {
		if s.Name == m.Data[i]["type"] {
			known = true
			for key := range m.Data[i] {
				named := func(f struct{ Key, Label, Format string }) bool { return f.Key == key }
				if key != "type" && !slices.ContainsFunc(s.Fields, named) {
					c.Errorf("marker %d: no field %s", i, key)
				}
			}
		}
	}
	if !ok || !known {
		c.Errorf("%s: marker %d: %v", th.Name, i, m.Data[i])
	}
}

// lines returns the threads of a file with their samples and markers, as text for comparisons.
func (f *file) lines() (all []string) {
	ms := func(at *float64) string { return strconv.FormatFloat(*at, 'g', -1, 64) }
	for i := range f.Threads {
		th := &f.Threads[i]
		all = append(all, fmt.Sprintf("%s %s", th.Name, th.TID))
		for i, stack := range th.Samples.Stack {
			cpu := "?"
			if d := th.Samples.ThreadCPUDelta[i]; d != nil {
				cpu = fmt.Sprint(*d)
			}
			all = append(all, fmt.Sprint(ms(&th.Samples.Time[i]), " ", f.stack(stack), " ", th.Samples.Weight[i], " ", cpu))
		}
		for i, d := range th.Markers.Data {
			at := ms(th.Markers.StartTime[i])
			if end := th.Markers.EndTime[i]; end != nil {
				at += "-" + ms(end)
			}
			line := f.Shared.StringArray[th.Markers.Name[i]] + " " + at
			for _, key := range []string{"text", "what", "why"} {
				if v, ok := d[key]; ok {
					line += fmt.Sprint(" ", v)
				}
			}
			all = append(all, line)
		}
	}
	return all
}

// stack returns a stack as "name:line/depth category", root first.
func (f *file) stack(index *int) string {
	var parts []string
	for index != nil {
		at := *index
		fr := f.Shared.StackTable.Frame[at]
		t := &f.Shared.FrameTable
		line, category := 0, "(as its caller)"
		if t.Line[fr] != nil {
			line = *t.Line[fr]
		}
		if t.Category[fr] != nil {
			category = f.Meta.Categories[*t.Category[fr]].Name
		}
		name := f.Shared.StringArray[f.Shared.FuncTable.Name[t.Func[fr]]]
		parts = append(parts, fmt.Sprintf("%s:%d/%d %s", name, line, t.InlineDepth[fr], category))
		index = nil
		if off := f.Shared.StackTable.PrefixOffset[at]; off != 0 {
			up := at - off
			index = &up
		}
	}
	slices.Reverse(parts)
	return strings.Join(parts, ";")
}
