package firefox

import (
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"math"

	"goprof/output/recording"
	"goprof/output/timeline"
)

// Options change what is written. The zero value has the defaults.
type Options struct {
	Samples int          // the most samples that are kept; 0 for timeline.DefaultSamples
	Tracks  int          // the most tracks; the last one is for all other threads; 0 for timeline.DefaultTracks
	Tell    func(string) // gets lines about what was merged or left out; may be nil
}

// Write writes a recording. For a recording without times it returns a *recording.Lacks: the viewer draws samples at
// their times, and has no other place for them.
func Write(to io.Writer, src recording.Source, o Options) error {
	info := src.Info()
	if !info.Timed {
		return &recording.Lacks{
			Problem: "the Firefox Profiler shows samples at their times, and this recording has no times",
			Remedy:  "choose a format that needs none (.speedscope.json, .pb.gz, .html), or begin with a .jfr file"}
	}
	all, err := timeline.Collect(src, timeline.Options{Samples: o.Samples, Tracks: o.Tracks})
	if err != nil {
		return err
	}
	z, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
	if err != nil {
		return err
	}
	w := writer{t: all[0], all: all, JSON: timeline.NewJSON(z), strings: newTexts(), start: startOf(all)}
	if err := w.collectMarks(src); err != nil {
		return err
	}
	w.makeTables()
	w.makeThreads()
	w.notes = w.allNotes()
	if o.Tell != nil {
		for _, n := range w.notes {
			o.Tell(n)
		}
	}
	w.file()
	return cmp.Or(w.Flush(), z.Close())
}

func startOf(all []*timeline.Timeline) int64 {
	first := int64(math.MaxInt64)
	for _, t := range all {
		if len(t.Tracks) > 0 {
			first = min(first, t.First)
		}
	}
	start := all[0].Info.Meta.Start
	if start.IsZero() || start.UnixNano() > first {
		return first
	}
	return start.UnixNano()
}

type writer struct {
	*timeline.JSON
	t       *timeline.Timeline   // the part that is being written; the first part for facts about all
	all     []*timeline.Timeline // the parts
	start   int64                // ns since 1970: all times count from here
	strings texts
	tables  tables
	threads []*viewerThread
	process markers // of the whole process
	markers int     // of all threads
	omitted int64   // markers that had no room
	latest  int64   // of all times
	notes   []string
}

// allNotes returns the notes for a reader.
func (w *writer) allNotes() []string {
	var notes []string
	for _, t := range w.all {
		notes = append(notes, t.Notes()...)
	}
	notes = append(notes, w.t.Info.Notes...)
	if w.omitted > 0 {
		notes = append(notes, fmt.Sprintf("there are too many markers: %d are left out", w.omitted))
	}
	return notes
}

// file writes the whole file. Texts get their numbers before, so that the table of texts can be anywhere in the file.
func (w *writer) file() {
	w.Raw(`{"meta":`)
	w.meta()
	w.Raw(",\n\"libs\":")
	w.libs()
	w.Raw(",\n\"shared\":")
	w.shared()
	w.Raw(",\n\"threads\":")
	w.List(len(w.threads), func(i int) { w.thread(w.threads[i]) })
	w.Raw("}\n")
}
