package firefox

import (
	"cmp"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"goprof/output/timeline"
	"goprof/profile"
)

type viewerThread struct {
	name   string
	tid    string // JSON
	isMain bool
	of     *timeline.Timeline // nil: the process's own track
	from   int64              // time of the first sample
	rows   []row
	marks  markers
}

// row is a sample as the viewer has it. A sample that stands for many looks at a thread that did not move has two rows,
// the first look and the last, so that it is drawn in its real length.
type row struct {
	at     int64 // ns since the start
	cpu    int64 // ns; negative if it is not known
	weight int64
	node   int32
}

const (
	maxExact = 1 << 53 // JavaScript's whole numbers are exact below this
	maxTime  = 1 << 61 // ns: 73 years
)

func (w *writer) makeThreads() {
	used := make(map[string]bool)
	if len(w.process.list) > 0 {
		w.addProcess(cmp.Or(w.t.Info.Meta.MainClass, "JVM"))
		used[w.threads[0].tid] = true
	}
	for _, w.t = range w.all {
		for i, tr := range w.t.Tracks {
			w.addThread(tr, i, used)
		}
	}
	w.t = w.all[0]
	if len(w.threads) == 0 { // the viewer does not load a file without a thread
		w.addProcess("no samples")
	}
}

// addThread makes the track of a thread, in the order of its part's tracks.
func (w *writer) addThread(tr *timeline.Track, i int, used map[string]bool) {
	t := &viewerThread{name: cmp.Or(tr.Name, tr.Title()), of: w.t}
	if tr.Virtual || tr.Group {
		t.name = tr.Title()
	}
	t.tid = tidOf(tr, i)
	if used[t.tid] {
		t.tid = strconv.Quote(strings.TrimRight(fmt.Sprintf("%d-%d-%s", tr.TID, i, w.t.Part), "-"))
	}
	used[t.tid] = true
	w.makeRows(t, tr)
	w.markStates(t, tr)
	w.markTruncated(t, tr)
	sort.SliceStable(t.marks.list, func(i, j int) bool { return t.marks.list[i].at < t.marks.list[j].at })
	w.threads = append(w.threads, t)
}

// addProcess makes the process's own track. Viewers hide a track without samples, and profiler-cli hangs on it. So this
// track has one sample at the beginning and one at the end, without stack and weight.
func (w *writer) addProcess(name string) {
	end := min(max(int64(w.t.Info.Meta.Duration), w.latest, int64(time.Millisecond)), maxTime)
	w.threads = append(w.threads, &viewerThread{name: name, isMain: true, marks: w.process,
		rows: []row{{}, {at: w.see(end)}},
		tid:  strconv.Quote(strconv.Itoa(w.t.Info.Meta.PID) + "-process")})
}

// tidOf returns a different tid for each track. Virtual threads and groups have no tid of the kernel's.
func tidOf(tr *timeline.Track, i int) string {
	switch {
	case tr.Group:
		return strconv.Quote(fmt.Sprintf("group-%d", i))
	case tr.Virtual && tr.ID != 0:
		return strconv.Quote(fmt.Sprintf("virtual-%d", tr.ID))
	case tr.Virtual || tr.TID <= 0 || tr.TID >= maxExact:
		return strconv.Quote(fmt.Sprintf("thread-%d", i))
	}
	return strconv.Itoa(tr.TID)
}

func (w *writer) makeRows(t *viewerThread, tr *timeline.Track) {
	sorted := true
	add := func(r row) {
		sorted = sorted && (len(t.rows) == 0 || t.rows[len(t.rows)-1].at <= r.at)
		t.rows = append(t.rows, r)
	}
	t.rows = make([]row, 0, len(tr.Samples))
	for i := range tr.Samples {
		s := &tr.Samples[i]
		first := row{at: w.since(s.At), cpu: w.cpuOf(s), weight: s.Looks, node: s.Node}
		if w.t.Value == timeline.Bytes {
			first.weight = s.Bytes
		}
		if !s.Wall || s.Looks < 2 || s.Span <= 0 || w.t.Value == timeline.Bytes {
			add(first)
			continue
		}
		last := first
		first.weight, last.weight = s.Looks-1, 1
		last.at = w.plus(first.at, s.Span-s.Span/s.Looks)
		if s.State == profile.Running {
			last.cpu = none
		} else {
			last.cpu = 0
		}
		add(first)
		add(last)
	}
	if !sorted { // the track has several threads
		sort.SliceStable(t.rows, func(i, j int) bool { return t.rows[i].at < t.rows[j].at })
	}
	if len(t.rows) > 0 {
		t.from = t.rows[0].at
	}
}

// cpuOf returns the CPU time that a sample's thread has used since its last sample.
func (w *writer) cpuOf(s *timeline.Sample) int64 {
	switch {
	case s.CPU > 0:
		return s.CPU
	case s.Wall && s.State != profile.Running:
		return 0
	case !s.Wall && w.t.Value == timeline.Interval:
		return w.t.Of(s)
	case !s.Wall && w.t.Value == timeline.CPU && w.t.Info.Meta.Interval > 0:
		return int64(w.t.Info.Meta.Interval)
	}
	return none
}

// since converts a time to the file's time.
func (w *writer) since(at int64) int64 { return w.see(timeline.Since(w.start, at)) }

func (w *writer) plus(at, d int64) int64 { return w.see(at + min(max(d, 0), maxTime-at)) }

// see notes the latest time, and keeps times within JavaScript's exact numbers.
func (w *writer) see(at int64) int64 {
	at = min(at, maxTime)
	w.latest = max(w.latest, at)
	return at
}

func (w *writer) thread(t *viewerThread) {
	w.Raw("\n" + `{"processType":"default","processStartupTime":0,"processShutdownTime":null,"registerTime":`)
	w.Ms(t.from)
	w.Raw(`,"unregisterTime":null,"pausedRanges":[],"showMarkersInTimeline":true,"name":`)
	w.Text(t.name)
	name, pid := cmp.Or(w.t.Info.Meta.MainClass, "JVM"), strconv.Itoa(w.t.Info.Meta.PID)
	if t.of != nil && t.of.Part != "" && t.of != w.all[0] { // the viewer has one table of samples for each thread
		name, pid = name+", "+t.of.Part, pid+"-"+t.of.Part
	}
	w.Raw(`,"isMainThread":` + strconv.FormatBool(t.isMain) + `,"processName":`)
	w.Text(name)
	w.Raw(`,"pid":`)
	w.Text(pid)
	w.Raw(`,"tid":` + t.tid + ",\n\"samples\":")
	w.samples(t)
	w.Raw(",\n\"markers\":")
	w.markerTable(&t.marks)
	w.Raw("}")
}

func (w *writer) samples(t *viewerThread) {
	rows := t.rows
	n := len(rows)
	w.begin("", n)
	weight := "samples"
	if t.of != nil && t.of.Value == timeline.Bytes {
		weight = "bytes"
	}
	w.Raw(`,"weightType":"` + weight + `"`)
	w.orNull("stack", n, func(i int) int { return int(rows[i].node) - 1 })
	w.Raw(`,"time":`)
	w.List(n, func(i int) { w.Ms(rows[i].at) })
	w.column("weight", n, func(i int) int { return int(rows[i].weight) })
	w.orNull("threadCPUDelta", n, func(i int) int { return int(rows[i].cpu) })
	w.Raw("}")
}
