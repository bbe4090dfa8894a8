package speedscope

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"goprof/output/recording"
	"goprof/output/timeline"
)

// Options change what is written. The zero value has the defaults.
type Options struct {
	Samples int          // the most samples that are kept; 0 for DefaultSamples
	Tracks  int          // the most profiles; the last one is for all other threads; 0 for timeline.DefaultTracks
	Tell    func(string) // gets lines about what was merged or left out; may be nil
}

// DefaultSamples bounds the samples of a file, after equal neighbours are merged.
const DefaultSamples = 1 << 20

// maxFrames bounds the frames of all samples in a file, of about six bytes each. Browsers refuse much larger files.
const maxFrames = 1 << 25

func Write(to io.Writer, src recording.Source, o Options) error {
	all, err := collect(src, o, maxFrames)
	if err != nil {
		return err
	}
	var notes []string
	for _, t := range all {
		notes = append(notes, t.Notes()...)
	}
	if o.Tell != nil {
		for _, n := range notes {
			o.Tell(n)
		}
	}
	w := trackWriter{t: all[0], JSON: timeline.NewJSON(to), texts: make(map[int32]string)}
	w.file(name(src, notes), all)
	return w.Flush()
}

func collect(src recording.Source, o Options, maxFrames int) ([]*timeline.Timeline, error) {
	return timeline.Collect(src, timeline.Options{Samples: cmp.Or(o.Samples, DefaultSamples), Frames: maxFrames,
		Tracks: o.Tracks, Merge: true})
}

type trackWriter struct {
	*timeline.JSON
	t     *timeline.Timeline
	path  []int32
	space []byte
	texts map[int32]string // of stacks, by node
	kept  int              // total bytes of texts
}

func (w *trackWriter) file(name string, all []*timeline.Timeline) {
	w.Raw(`{"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":`)
	w.Text(strings.TrimSpace("goprof " + w.t.Info.Meta.Version))
	w.Raw(`,"name":`)
	w.Text(name)
	w.Raw(`,"activeProfileIndex":0,"shared":{"frames":`)
	w.List(len(w.t.Frames), w.frame)
	w.Raw("},\n\"profiles\":")
	w.profiles(all)
	w.Raw("}\n")
}

// name returns the title, which speedscope shows at the top. It is the only place for a warning.
func name(src recording.Source, notes []string) string {
	i := src.Info()
	parts := []string{cmp.Or(i.Name, i.Meta.MainClass, "goprof")}
	if i.Event != "" {
		parts = append(parts, i.Event)
	} else if i.Meta.Mode != "" {
		parts = append(parts, i.Meta.Mode)
	}
	if i.Meta.PID != 0 {
		parts = append(parts, fmt.Sprintf("pid %d", i.Meta.PID))
	}
	if !i.Meta.Start.IsZero() {
		parts = append(parts, i.Meta.Start.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	return strings.Join(append(parts, notes...), ", ")
}

func (w *trackWriter) frame(i int) {
	f := &w.t.Frames[i]
	w.Raw(`{"name":`)
	w.Text(cmp.Or(f.Func.Name, "[unknown]"))
	if file := cmp.Or(f.Func.File, f.Func.Module); file != "" {
		w.Raw(`,"file":`)
		w.Text(file)
	}
	if f.Line > 0 {
		w.Raw(`,"line":`)
		w.Int(int64(f.Line))
	}
	w.Raw("}")
}

// profiles writes a profile for each track of each part. speedscope refuses a file without a profile, so an empty one
// is written if there are no tracks.
func (w *trackWriter) profiles(all []*timeline.Timeline) {
	type profile struct {
		of    *timeline.Timeline
		track *timeline.Track
	}
	var list []profile
	for _, t := range all {
		for _, tr := range t.Tracks {
			list = append(list, profile{t, tr})
		}
	}
	if len(list) == 0 {
		list = []profile{{w.t, &timeline.Track{Name: "no samples"}}}
	}
	w.List(len(list), func(i int) {
		w.t = list[i].of
		w.profile(list[i].track)
	})
}

func (w *trackWriter) profile(tr *timeline.Track) {
	title := tr.Title()
	if w.t.Part != "" {
		title += ", " + w.t.Part
	}
	w.Raw("\n" + `{"type":"sampled","name":`)
	w.Text(title)
	w.Raw(`,"unit":"` + unit(w.t.Value) + `","startValue":0,"endValue":`)
	w.Int(tr.Weight)
	w.Raw(",\n\"samples\":")
	w.List(len(tr.Samples), func(i int) { w.stack(tr.Samples[i].Node) })
	w.Raw(",\n\"weights\":")
	w.List(len(tr.Samples), func(i int) { w.Int(w.t.Of(&tr.Samples[i])) })
	w.Raw("}")
}

// maxTexts bounds the texts of stacks that are kept, in bytes.
const maxTexts = 32 << 20

// stack writes a stack's frames. Most stacks of a recording occur repeatedly, so their texts are kept.
func (w *trackWriter) stack(node int32) {
	text, known := w.texts[node]
	if !known {
		w.path = w.t.Path(node, w.path)
		b := append(w.space[:0], '[')
		for i, frame := range w.path {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, int64(frame), 10)
		}
		w.space = append(b, ']')
		text = string(w.space)
		if w.kept += len(text); w.kept > maxTexts {
			clear(w.texts)
			w.kept = len(text)
		}
		w.texts[node] = text
	}
	w.Raw(text)
}

func unit(v timeline.Value) string {
	switch {
	case v.IsTime():
		return "nanoseconds"
	case v == timeline.Bytes:
		return "bytes"
	}
	return "none"
}
