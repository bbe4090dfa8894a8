package firefox

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"goprof/output"
)

const (
	geckoVersion     = 24 // of the format that the processed profile is made from
	processedVersion = 66
	visibleThreads   = 15 // number of threads that are shown at first
)

func (w *writer) meta() {
	m := &w.t.Info.Meta
	interval := cmp.Or(m.Interval, time.Millisecond)
	w.Raw(fmt.Sprintf(`{"version":%d,"preprocessedProfileVersion":%d,"interval":`, geckoVersion, processedVersion))
	w.Ms(max(int64(interval), 1000))
	w.Raw(`,"startTime":`)
	w.Ms(w.start)
	w.Raw(`,"profilingStartTime":0,"profilingEndTime":`)
	w.Ms(w.end())
	w.Raw(`,"processType":0,"stackwalk":1,"debug":false,"product":`)
	w.Text(cmp.Or(m.MainClass, w.t.Info.Name, "JVM"))
	w.Raw(`,"importedFrom":`)
	w.Text(strings.TrimSpace("goprof " + m.Version))
	w.Raw(`,"oscpu":"Linux","platform":"X11","symbolicated":true,"symbolicationNotSupported":true,` +
		`"usesOnlyOneStackType":true,"sourceCodeIsNotOnSearchfox":true,"keepProfileThreadOrder":true,` +
		`"sampleUnits":{"time":"ms","eventDelay":"ms","threadCPUDelta":"ns"},"initialVisibleThreads":`)
	w.List(min(len(w.threads), visibleThreads), func(i int) { w.Int(int64(i)) })
	w.Raw(`,"initialSelectedThreads":`)
	w.List(min(len(w.threads), 1), func(int) { w.Int(int64(w.firstWithSamples())) })
	w.Raw(",\n\"categories\":")
	w.Any(categories)
	w.Raw(",\n\"markerSchema\":")
	w.Any(markerSchema)
	w.Raw(",\n\"extra\":")
	w.extra()
	w.Raw("}")
}

// end is when the last sample, or the recording, ends.
func (w *writer) end() int64 {
	return min(max(int64(w.t.Info.Meta.Duration), w.latest), maxTime)
}

// firstWithSamples returns the track that is selected at first. The process's own track would show nothing.
func (w *writer) firstWithSamples() int {
	for i, t := range w.threads {
		if !t.isMain {
			return i
		}
	}
	return 0
}

// extra writes what the viewer's panel shows after "more info".
func (w *writer) extra() {
	type entry struct {
		Label  string `json:"label"`
		Format string `json:"format"`
		Value  string `json:"value"`
	}
	type section struct {
		Label   string  `json:"label"`
		Entries []entry `json:"entries"`
	}
	i := &w.t.Info
	about := section{Label: "Recording", Entries: []entry{}}
	add := func(label, value string) {
		if value != "" {
			about.Entries = append(about.Entries, entry{label, "string", output.Printable(value)})
		}
	}
	add("File", i.Name)
	add("Samples are", i.Event)
	add("Mode", i.Meta.Mode)
	add("Engine", i.Meta.Engine)
	add("JVM", i.Meta.JVM)
	add("Host", i.Meta.Host)
	if s := i.Summary; s != nil {
		add("Account", fmt.Sprintf("%d looks: %d whole stacks, %d truncated, %d lost",
			s.Attempted, s.Whole, s.Truncated, s.Lost))
	}
	for _, n := range w.notes {
		add("Note", n)
	}
	w.Any([]section{about})
}
