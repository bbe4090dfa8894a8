package recording

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"goprof/output/jfr"
	"goprof/profile"
)

// jfrFile is a JFR file. Each call of Each reads its events again: memory holds the constants of one chunk.
type jfrFile struct {
	about   Info
	file    io.ReaderAt
	size    int64
	events  []string // names of those that are its samples
	noted   noted
	threads settled
	contents
}

func openJFR(file io.ReaderAt, size int64, name string, o Options) (*jfrFile, error) {
	f := &jfrFile{file: file, size: size, about: Info{Name: name, Format: JFR, Timed: true, Threads: true, States: true}}
	scan := newScan()
	if err := scan.run(file, size); err != nil {
		return nil, err
	}
	f.contents, f.noted = scan.contents, scan.noted
	events, err := scan.choose(o.Event)
	if err != nil {
		return nil, err
	}
	f.events, f.threads = events, scan.threads.settled()
	scan.fill(&f.about, events)
	f.about.Earlier = f.threads.earlier
	if kind := f.partKind(events[0]); kind.Name != profile.ModeWall {
		f.about.Kind = kind
	}
	scan.fillParts(&f.about, events)
	if f.about.All = o.All && len(f.about.Parts) > 1; f.about.All {
		f.events = nil
		for i := range f.about.Parts {
			f.events = append(f.events, f.about.Parts[i].events...)
		}
		f.about.Event = eventText(f.events)
	}
	return f, nil
}

func (f *jfrFile) info() *Info { return &f.about }
func (f *jfrFile) Info() Info  { return f.about }

// read reads the wanted events, to the end of the last whole chunk. set may set the reader's options.
func (f *jfrFile) read(want func(name string, stack bool) bool, set func(*jfr.Reader),
	visit func(*jfr.Reader, *jfr.Event) error) error {
	r := jfr.NewReader(f.file, f.size, want)
	set(r)
	for {
		e, err := r.Next()
		switch {
		case err == io.EOF || isCutOff(err) && r.Chunks() > 0:
			return nil
		case err != nil:
			return err
		}
		if err := visit(r, e); err != nil {
			return err
		}
	}
}

// isCutOff reports whether a chunk was not finished: goprof or the JVM was killed, or is still writing.
func isCutOff(err error) bool {
	var bad *jfr.BadRecording
	return errors.As(err, &bad) && bad.Incomplete
}

func (f *jfrFile) Each(visit func(*profile.Sample) error) error { return f.Visit(AllStacks, visit) }

func (f *jfrFile) Visit(stacks Stacks, visit func(*profile.Sample) error) error {
	set := (*jfr.Reader).NumberStacks
	switch stacks {
	case NoStacks:
		set = (*jfr.Reader).NoStacks
	case AllStacks:
		visit = readFirst(visit)
	}
	m := sampleMaker{ours: f.ours, sorts: make(map[string]eventSort), classes: make(map[leafKey]profile.Frame),
		threads: &f.threads}
	for _, name := range f.events {
		m.sorts[name] = eventSort{kind: f.kind(name), mode: f.mode(name), part: f.partOf(name)}
	}
	m.unread = m.read
	wanted := func(name string, stack bool) bool { return stack && slices.Contains(f.events, name) }
	return f.read(wanted, set, func(r *jfr.Reader, e *jfr.Event) error {
		if err := m.sample(r, e); err != nil {
			return err
		}
		return visit(&m.made)
	})
}

// partOf returns the Event of samples if all parts are read. It is nil if one part is read, and for CPU time.
func (f *jfrFile) partOf(event string) *profile.EventKind {
	if kind := f.partKind(event); f.about.All && kind.Name != "" {
		return &kind
	}
	return nil
}

type sampleMaker struct {
	ours    bool
	sorts   map[string]eventSort
	made    profile.Sample
	threads *settled
	reader  *jfr.Reader  // the reader of the sample
	of      *jfr.Event   // the event that the sample is made from
	unread  func() error // read
	stack   profile.Stack
	classes map[leafKey]profile.Frame // leaves that show what was allocated or waited for

	event string // of the last sample
	sort  eventSort
}

type eventSort struct {
	kind *profile.EventKind
	mode string
	part *profile.EventKind // nil if one part is read, and for CPU time
}

type leafKey struct {
	name string
	kind profile.Kind
}

// maxClasses bounds the kept leaves.
const maxClasses = 1 << 14

// sample makes a sample from an event. It reads the stack only if the sample adds a leaf to it.
func (m *sampleMaker) sample(r *jfr.Reader, e *jfr.Event) error {
	m.reader, m.of = r, e
	s := &m.made
	*s = profile.Sample{} // each field is set in place: copying a whole sample would cost more
	s.At, s.Thread, s.Count, s.CPU, s.Link = instantOf(r, e), m.threads.of(&e.Thread), e.Samples, e.CPU, e.Link
	s.WakerLink = e.WakerLink
	s.Stack, s.StackNumber, s.Unread = e.Stack, stackNumber(e.StackNumber, profile.Certain), m.unread
	state, known := e.ProfileState()
	s.State = state
	if m.event != e.Name {
		m.event, m.sort = e.Name, m.sorts[e.Name]
	}
	if m.sort.kind != nil {
		if err := m.hit(s, e, m.sort.kind); err != nil {
			return err
		}
	}
	switch m.sort.mode {
	case profile.ModeCPU:
		if m.ours {
			s.StackNumber = stackNumber(e.StackNumber, e.Leaf)
		}
	case profile.ModeWall:
		s.Wall, s.Span, s.NoState = true, e.Span, !known
	case "lock":
		s.Wall, s.Span, s.State = true, e.Duration, profile.Blocked
		if e.Name == threadPark {
			s.State = profile.Parked
		}
		if err := m.leaf(s, s.State.Label(e.Class), profile.StateFrame); err != nil {
			return err
		}
	case profile.EventIO:
		if err := m.call(s, e); err != nil {
			return err
		}
	default: // the type of the event shows what the thread did
		if s.NoState = !known; s.Event == nil {
			s.Wall, s.Span = true, e.Duration
		}
	}
	if m.sort.part != nil {
		s.Event = m.sort.part
	}
	if s.StackNumber == 0 && (s.Stack == nil || len(s.Stack.Frames) == 0) {
		m.stack = profile.Stack{Frames: append(m.stack.Frames[:0], noStack)}
		s.Stack = &m.stack
	}
	return nil
}

func (m *sampleMaker) read() error {
	if m.of.Stack == nil {
		if err := m.reader.ReadStack(m.of); err != nil {
			return err
		}
	}
	if m.made.Stack = m.of.Stack; m.sort.mode == profile.ModeCPU && m.ours {
		m.sure(&m.made, m.of)
	}
	return nil
}

// hit makes a sample from an event. Its leaf is the object of the event, such as a class.
func (m *sampleMaker) hit(s *profile.Sample, e *jfr.Event, kind *profile.EventKind) error {
	s.Event, s.About = kind, e.Class != ""
	if kind.Unit == profile.Bytes {
		s.Bytes = e.Bytes
	}
	return m.leaf(s, e.Class, e.TLAB.Kind())
}

// call makes a sample from a call that reads or writes. In goprof's files, one call may stand for several.
func (m *sampleMaker) call(s *profile.Sample, e *jfr.Event) error {
	s.Wall, s.NoState, s.About = true, true, e.Target != ""
	if s.Span = e.Duration; m.ours {
		s.Span = e.Span
	}
	op := jfr.IOTypes[e.Name]
	if named, ok := profile.ParseIOOp(e.Operation); ok {
		op = named
	}
	if e.Target == "" {
		return nil
	}
	return m.leaf(s, profile.IOLabel(op, e.Target), profile.StateFrame)
}

// leaf adds a leaf to the stack: what the topmost frame has allocated or waited for.
func (m *sampleMaker) leaf(s *profile.Sample, name string, kind profile.Kind) error {
	if name == "" {
		return nil
	}
	if err := s.Read(); err != nil {
		return err
	}
	frame := profile.Cached(m.classes, maxClasses, leafKey{name, kind}, func() profile.Frame {
		return profile.Frame{Func: &profile.Func{Name: name}, Kind: kind, BCI: -1}
	})
	s.StackNumber = 0
	frames := append(m.stack.Frames[:0], frame)
	m.stack = profile.Stack{Frames: frames}
	if s.Stack != nil {
		m.stack.Frames = append(frames, s.Stack.Frames...)
		m.stack.Truncated = s.Stack.Truncated
	}
	s.Stack = &m.stack
	return nil
}

// sure sets how certain a sample's leaf is. Samples share stacks, so this needs a copy of the stack.
func (m *sampleMaker) sure(s *profile.Sample, e *jfr.Event) {
	if e.Leaf == profile.Certain || s.Stack == nil || len(s.Stack.Frames) == 0 {
		return
	}
	m.stack = profile.Stack{Frames: append(m.stack.Frames[:0], s.Stack.Frames...), Truncated: s.Stack.Truncated}
	m.stack.Frames[0].Sure = e.Leaf
	s.Stack = &m.stack
}

// stackNumber returns the number of a stack whose leaf has this certainty. n is the reader's number. 0 stays 0.
func stackNumber(n uint64, leaf profile.Certainty) uint64 {
	if n == 0 {
		return 0
	}
	return n | uint64(leaf)<<leafBit
}

// leafBit is above the reader's numbers of stacks: no reader counts so far.
const leafBit = 60

// eventText lists the events that are samples, for Info.Event.
func eventText(events []string) string { return strings.Join(events, ", ") }

// cutOffNote says which part of a file is missing.
func cutOffNote(err error, chunks int) string {
	return fmt.Sprintf("the recording's end is missing, its first %d chunks are read: %v", chunks, err)
}

// noEndNote says up to which time a goprof file has samples. All its chunks are whole: a goprof that is killed writes
// nothing of the open chunk.
func noEndNote(to time.Time) string {
	return "the recording was not ended: goprof was killed, or is still recording. What it saw after " +
		to.Format("15:04:05 MST") + " is not in the file, nor is the account of the run"
}
