package recording

import (
	"time"

	"goprof/output/jfr"
	"goprof/profile"
)

// Life is the start or the end of a thread.
type Life struct {
	At     profile.Instant
	Thread profile.Thread
	End    bool
}

// Lived is a Source that may know when threads started and ended.
type Lived interface {
	Source
	// Lives calls visit for each, in the order of the file.
	Lives(visit func(Life) error) error
}

// Lives visits the lives that a source knows. There may be none.
func Lives(src Source, visit func(Life) error) error {
	if l, ok := src.(Lived); ok {
		return l.Lives(visit)
	}
	return nil
}

const (
	threadStart = "jdk.ThreadStart"
	threadEnd   = "jdk.ThreadEnd"
)

// Lives visits the starts and ends of threads, if the file is JFR.
func (f *File) Lives(visit func(Life) error) error {
	file, ok := f.source.(*jfrFile)
	if !ok {
		return nil
	}
	named := func(l Life) error {
		l.Thread = file.threads.of(&l.Thread)
		return visit(l)
	}
	if all := &file.noted; !all.tooMany {
		return eachOf(all.lives, named)
	}
	want := func(name string, _ bool) bool { return isLife(name) }
	return file.read(want, (*jfr.Reader).NoStacks, func(r *jfr.Reader, e *jfr.Event) error {
		return named(lifeOf(r, e))
	})
}

func isLife(event string) bool { return event == threadStart || event == threadEnd }

func lifeOf(r *jfr.Reader, e *jfr.Event) Life {
	return Life{At: instantOf(r, e), Thread: e.Thread, End: e.Name == threadEnd}
}

// Lives returns the lives of the wanted threads, in the wanted time.
func (p *Filtered) Lives(visit func(Life) error) error {
	f := &p.f
	start := p.of.Info().Meta.Start.UnixNano()
	return Lives(p.of, func(l Life) error {
		at := time.Duration(l.At.Wall - start)
		if at < f.From || f.To > 0 && at >= f.To {
			return nil
		}
		if (f.Thread != nil || f.ExcludeThread != nil) && !p.thread(&l.Thread) {
			return nil
		}
		return visit(l)
	})
}
