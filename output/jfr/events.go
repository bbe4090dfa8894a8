package jfr

import (
	"encoding/hex"
	"math"
	"time"

	"goprof/profile"
)

type constantList struct {
	typ   typeID
	count int
	data  []byte
}

// fixedPools are the constants that do not depend on what was seen. Key 0 is "none" in all but that of the frame types.
var fixedPools = []constantList{
	frameTypes(),
	names(typeThreadState, 1, stateNames),
	names(typeCertainty, 1, certainties()),
}

func frameTypes() constantList {
	list := constantList{typ: typeFrameType}
	for _, t := range frameTypeNames {
		list.count++
		list.data = appendText(appendInt(list.data, uint64(t.key)), t.name)
	}
	return list
}

func names(typ typeID, first int, texts []string) constantList {
	list := constantList{typ: typ, count: len(texts)}
	for i, text := range texts {
		list.data = appendText(appendInt(list.data, uint64(i+first)), text)
	}
	return list
}

func certainties() (all []string) {
	for c := range profile.NumCertainty {
		all = append(all, c.String())
	}
	return all
}

// Sample writes a sample. A sample of CPU time is written as often as it has looks, each with its share of the CPU
// time. A sample of a wall-clock mode or of an event is written once, with the number of its looks. If the chunk
// already has its thread and frames, Sample allocates nothing.
func (w *Writer) Sample(s *profile.Sample) error {
	if err := w.at(s.At); err != nil {
		return err
	}
	if s.IO != nil {
		return w.call(s)
	}
	if s.Event != nil && !s.Wall {
		return w.hit(s)
	}
	thread := w.pools.thread(&s.Thread)
	trace, err := w.pools.trace(s)
	if err != nil {
		return err
	}
	typ := typeExecutionSample
	switch {
	case s.Event != nil:
		typ = w.eventType(s.Event).id
	case s.Wall:
		typ = typeWallClockSample
	case trace.leaf.native:
		typ = typeNativeMethodSample
	}
	count := max(s.Count, 1)
	if s.Wall {
		w.sample(typ, s, thread, trace, s.CPU, count)
		return nil
	}
	count = min(count, maxCount)
	share := s.CPU / time.Duration(count)
	w.sample(typ, s, thread, trace, s.CPU-share*time.Duration(count-1), 1)
	for range count - 1 {
		w.sample(typ, s, thread, trace, share, 1)
	}
	return nil
}

// sample writes one event for a sample, which stands for count looks.
func (w *Writer) sample(typ typeID, s *profile.Sample, thread uint64, of trace, cpu time.Duration, count int64) {
	w.event(typ, s.At.Ticks)
	b := appendInt(w.body, thread)
	b = appendInt(b, of.key)
	state := uint64(s.State) + 1
	if s.NoState {
		state = 0 // refers to nothing
	}
	b = appendInt(b, state)
	if s.Wall {
		b = appendInt32(b, int32(min(count, math.MaxInt32)))
		b = appendInt(b, uint64(s.Span))
	}
	w.body = b
	w.end()
	w.detail(s, s.At.Ticks, thread, of.leaf.sure, cpu)
}

// detail writes what is known of a sample beyond its event's fields, if there is anything. The event has that time.
func (w *Writer) detail(s *profile.Sample, ticks int64, thread uint64, sure profile.Certainty, cpu time.Duration) {
	tlab := tlabOf(s)
	if cpu == 0 && sure == profile.Certain && tlab == 0 && !s.Link.Known() && !s.WakerLink.Known() {
		return
	}
	w.event(typeSampleDetail, ticks)
	b := appendInt(w.body, thread)
	b = appendInt(b, uint64(cpu))
	b = appendInt(b, uint64(sure)+1)
	b = appendInt(b, uint64(tlab))
	for _, l := range [2]*profile.Link{&s.Link, &s.WakerLink} {
		b = appendID(appendID(b, l.Trace[:], l.Known()), l.Span[:], l.Known())
	}
	w.body = b
	w.end()
	w.unsaved-- // it is no event of its own
}

// TLAB says where an object was allocated. The kind of the frame that is its class says it too: flame graph tools
// colour these two apart.
type TLAB uint8

const (
	_ TLAB = iota
	newTLAB
	outsideTLAB
)

func tlabOf(s *profile.Sample) TLAB {
	if s.About && s.Stack != nil && len(s.Stack.Frames) > 0 {
		switch s.Stack.Frames[0].Kind {
		case profile.Inlined:
			return newTLAB
		case profile.Kernel:
			return outsideTLAB
		}
	}
	return 0
}

// Kind returns the kind of the frame that is the object's class.
func (t TLAB) Kind() profile.Kind {
	switch t {
	case newTLAB:
		return profile.Inlined
	case outsideTLAB:
		return profile.Kernel
	}
	return profile.Native
}

// appendID appends a text of hexadecimal digits, null if there is no id.
func appendID(b, id []byte, known bool) []byte {
	if !known {
		return append(b, stringNull)
	}
	return hex.AppendEncode(appendInt(append(b, stringUTF8), uint64(2*len(id))), id)
}

// ThreadStart writes that a thread was first seen.
func (w *Writer) ThreadStart(at profile.Instant, t profile.Thread) error {
	return w.threadEvent(typeThreadStart, at, &t)
}

// ThreadEnd writes that a thread was found gone.
func (w *Writer) ThreadEnd(at profile.Instant, t profile.Thread) error {
	return w.threadEvent(typeThreadEnd, at, &t)
}

// threadEvent writes that a thread has begun or ended.
func (w *Writer) threadEvent(typ typeID, at profile.Instant, t *profile.Thread) error {
	if err := w.at(at); err != nil {
		return err
	}
	key := w.pools.thread(t)
	w.event(typ, at.Ticks)
	b := appendInt(w.body, key)
	if typ == typeThreadStart {
		b = append(b, 0) // stack
	}
	b = appendInt(b, key)
	if typ == typeThreadStart {
		b = append(b, 0) // parent
	}
	w.body = b
	w.end()
	if typ == typeThreadEnd {
		w.pools.threads.end(t)
	}
	return nil
}

// Mark writes a mark of a moment or of a span of time.
func (w *Writer) Mark(at profile.Instant, length time.Duration, kind, text string) error {
	if err := w.at(at); err != nil {
		return err
	}
	w.event(typeMark, at.Ticks)
	w.numbers(max(int64(length), 0))
	w.texts(kind, text)
	w.end()
	return nil
}

// ThreadCount is how many Java threads there are.
type ThreadCount struct {
	Active, Daemon, Started, Peak int64
}

// Threads writes how many threads there are at a moment.
func (w *Writer) Threads(at profile.Instant, n ThreadCount) error {
	if err := w.at(at); err != nil {
		return err
	}
	w.event(typeThreadStatistics, at.Ticks)
	w.numbers(n.Active, n.Daemon, n.Started, n.Peak)
	w.end()
	return nil
}

// Allocated writes how many bytes a thread has allocated since it began.
func (w *Writer) Allocated(at profile.Instant, t profile.Thread, bytes uint64) error {
	if err := w.at(at); err != nil {
		return err
	}
	thread := w.pools.thread(&t)
	w.event(typeThreadAllocation, at.Ticks)
	w.numbers(int64(min(bytes, math.MaxInt64)), int64(thread))
	w.end()
	return nil
}

// Account writes the account of the run: what became of every look, what is missing for which reason, how long threads
// were held, and what a reader should know. The accounts of further parts follow. Call Account once, before Close.
func (w *Writer) Account(at profile.Instant, s *profile.Summary) error {
	if err := w.at(at); err != nil {
		return err
	}
	w.account(at, s)
	for i := range s.Parts {
		w.account(at, &s.Parts[i])
	}
	return nil
}

func (w *Writer) account(at profile.Instant, s *profile.Summary) {
	t := &s.Times
	w.event(typeAccount, at.Ticks)
	w.numbers(s.Attempted, s.Whole, s.Truncated, s.Lost, s.LeafLikely, s.LeafGuessed, s.Skipped, int64(s.Threads))
	w.body = appendDouble(w.body, s.Rate)
	w.body = appendDouble(w.body, s.RateReached)
	w.numbers(int64(t.Process), int64(t.Sampled), int64(t.NotSampled), int64(t.Exited), int64(s.OwnCPU))
	w.texts(string(s.Quality), s.Meta.Part)
	w.end()
	w.unseen(at, false, s.TruncatedBy, s.Meta.Part)
	w.unseen(at, true, s.LostBy, s.Meta.Part)
	p := &s.Pauses
	w.event(typePauses, at.Ticks)
	w.numbers(p.Count, int64(p.P50), int64(p.P99), int64(p.Max), int64(p.Total), int64(p.Bound))
	w.texts(s.Meta.Part)
	w.end()
	w.eventCounts(at, s.Events)
	w.sums(at, s.IO)
	for _, n := range s.Notes {
		w.event(typeNote, at.Ticks)
		w.texts(n.Name, n.Text, n.Remedy, s.Meta.Part)
		w.end()
	}
}

func (w *Writer) unseen(at profile.Instant, lost bool, by map[string]int64, part string) {
	for r := range profile.NumReasons { // always in the same order
		n, ok := by[r.String()]
		if !ok {
			continue
		}
		w.event(typeUnseen, at.Ticks)
		w.body = appendBool(w.body, lost)
		w.texts(r.String())
		w.numbers(n)
		w.texts(part)
		w.end()
	}
}

func (w *Writer) numbers(all ...int64) {
	for _, n := range all {
		w.body = appendInt(w.body, uint64(n))
	}
}

func (w *Writer) texts(all ...string) {
	for _, s := range all {
		w.body = appendString(w.body, s)
	}
}
