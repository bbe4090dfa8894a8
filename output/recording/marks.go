package recording

import (
	"slices"
	"strings"
	"time"

	"goprof/output/jfr"
	"goprof/profile"
)

// The kinds of marks.
const (
	MarkGC        = "gc"        // a collection from beginning to end
	MarkPause     = "pause"     // a collection's pause: no Java code ran
	MarkSafepoint = "safepoint" // no Java code ran, for any reason
)

const (
	safepointBegin = "jdk.SafepointBegin"
	safepointEnd   = "jdk.SafepointEnd"
	vmOperation    = "jdk.ExecuteVMOperation"
	ourMark        = "goprof.Mark" // written by goprof when it converts other tools' recordings
)

// markEvents are the events of the JDK's recorder that are marks.
var markEvents = map[string]string{
	"jdk.GarbageCollection": MarkGC, "jdk.GCPhasePause": MarkPause, "jdk.ZAllocationStall": MarkPause,
	safepointBegin: MarkSafepoint, safepointEnd: MarkSafepoint, vmOperation: MarkSafepoint,
	ourMark: MarkPause, // the event itself has the kind
}

var markKinds = []string{MarkGC, MarkPause, MarkSafepoint}

// Marks visits the collections and safepoints of the recording.
func (f *jfrFile) Marks(visit func(Mark) error) error {
	if all := &f.noted; !all.tooMany {
		return eachOf(all.marks, visit)
	}
	open := safepoints{}
	want := func(name string, _ bool) bool { return markEvents[name] != "" }
	return f.read(want, (*jfr.Reader).NoStacks, func(r *jfr.Reader, e *jfr.Event) error {
		if m, ok := open.mark(r, e); ok {
			return visit(m)
		}
		return nil
	})
}

// mark returns the mark for an event of markEvents. ok is false if there is none.
func (s safepoints) mark(r *jfr.Reader, e *jfr.Event) (m Mark, ok bool) {
	m = Mark{Kind: markEvents[e.Name], At: instantOf(r, e), For: max(e.Duration, 0)}
	fields := fieldsOf(e)
	switch e.Name {
	case safepointBegin:
		s.begin(fields.number("safepointId"), m)
		return m, false
	case safepointEnd:
		m = s.end(fields.number("safepointId"), m)
	case vmOperation:
		m.Text = fields.text("operation")
		return m, fields.number("safepoint") != 0
	case ourMark:
		m.Text = fields.text("text")
		if kind := fields.text("kind"); slices.Contains(markKinds, kind) {
			m.Kind = kind
		}
	default:
		m.Text = markText(fields)
	}
	return m, true
}

// instantOf returns the time of an event. If the file does not say which clock its ticks are from, only the wall
// clock's time is known.
func instantOf(r *jfr.Reader, e *jfr.Event) profile.Instant {
	at := e.At
	if !r.Nanos() {
		at.Ticks = at.Wall
	}
	return at
}

func markText(f fields) string {
	text := f.text("name")
	if cause := f.text("cause"); cause != "" {
		text += " (" + cause + ")"
	}
	return strings.TrimSpace(text)
}

// safepoints are the safepoints that have begun. The JDK writes beginning and end as two events.
type safepoints map[int64]Mark

// maxSafepoints bounds the open safepoints. A JVM has one.
const maxSafepoints = 1 << 10

func (s safepoints) begin(id int64, m Mark) {
	if len(s) >= maxSafepoints {
		clear(s)
	}
	s[id] = m
}

// end returns the whole safepoint. If its beginning is not known, it returns only the end.
func (s safepoints) end(id int64, m Mark) Mark {
	begun, ok := s[id]
	delete(s, id)
	if !ok || m.At.Wall < begun.At.Wall {
		return m
	}
	begun.For = time.Duration(m.At.Wall-begun.At.Wall) + m.For
	return begun
}
