package jfr

import (
	"encoding/binary"
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

// fixedPools are the constants that do not depend on the target. Key 0 is "none" in all pools except that of frame
// types.
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

// Sample writes a sample. A sample of CPU time is written as often as it has looks, each time with its share of the CPU
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
		state = 0 // none
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

// detail writes the facts of a sample that the event has no field for. Without such facts it writes nothing. ticks is
// the time of the sample's event.
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
	w.unsaved-- // it does not count as an event
}

// TLAB is where an object was allocated: in a new TLAB or outside. The kind of the frame for the object's class has the
// same information, because flame graph tools have a colour for each kind.
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

// Kind returns the kind of the frame for the object's class.
func (t TLAB) Kind() profile.Kind {
	switch t {
	case newTLAB:
		return profile.Inlined
	case outsideTLAB:
		return profile.Kernel
	}
	return profile.Native
}

// appendID appends an id as hexadecimal digits, or null if there is none.
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

// threadEvent writes that a thread has started or ended.
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

// Mark writes a mark for a time or a span of time.
func (w *Writer) Mark(at profile.Instant, length time.Duration, kind, text string) error {
	return w.putAt(at, typeMark, max(length, 0), kind, text)
}

// ThreadCount is the number of Java threads.
type ThreadCount struct {
	Active, Daemon, Started, Peak int64
}

// Threads writes how many threads there are at a given time.
func (w *Writer) Threads(at profile.Instant, n ThreadCount) error {
	return w.putAt(at, typeThreadStatistics, n.Active, n.Daemon, n.Started, n.Peak)
}

// Allocated writes how many bytes a thread has allocated since its start.
func (w *Writer) Allocated(at profile.Instant, t profile.Thread, bytes uint64) error {
	if err := w.at(at); err != nil {
		return err
	}
	w.put(typeThreadAllocation, at.Ticks, bytes, w.pools.thread(&t))
	return nil
}

// Account writes the account of the recording: the looks by their outcome, what is missing and why, how long threads
// were held, and the notes. Then it writes the accounts of further parts. Call it once, before Close.
func (w *Writer) Account(at profile.Instant, s *profile.Summary) error {
	if err := w.at(at); err != nil {
		return err
	}
	w.account(at.Ticks, s)
	for i := range s.Parts {
		w.account(at.Ticks, &s.Parts[i])
	}
	return nil
}

func (w *Writer) account(at int64, s *profile.Summary) {
	t, p, part := &s.Times, &s.Pauses, s.Meta.Part
	w.put(typeAccount, at, s.Attempted, s.Whole, s.Truncated, s.Lost, s.LeafLikely, s.LeafGuessed, s.Skipped,
		int64(s.Threads), s.Rate, s.RateReached, t.Process, t.Sampled, t.NotSampled, t.Exited, s.OwnCPU,
		string(s.Quality), part)
	w.unseen(at, false, s.TruncatedBy, part)
	w.unseen(at, true, s.LostBy, part)
	w.put(typePauses, at, p.Count, p.P50, p.P99, p.Max, p.Total, p.Bound, part)
	for i := range s.Events {
		e := &s.Events[i]
		w.put(typeEventCount, at, e.Name, weightNames[e.Unit], e.Hits, e.Amount, e.Taken, e.Stood, e.Missed, e.Interval)
	}
	if s.IO != nil {
		for i := range s.IO.Sums {
			c := &s.IO.Sums[i]
			w.put(typeIOSum, at, c.Kind, c.Target, c.Op, c.Calls, c.Bytes, c.Took, c.Failed, c.Pending, c.Pended)
		}
	}
	for _, n := range s.Notes {
		w.put(typeNote, at, n.Name, n.Text, n.Remedy, part)
	}
}

func (w *Writer) unseen(at int64, lost bool, by map[string]int64, part string) {
	for r := range profile.NumReasons { // for a fixed order
		if n, ok := by[r.String()]; ok {
			w.put(typeUnseen, at, lost, r.String(), n, part)
		}
	}
}

// putAt is put for an event that may begin a chunk.
func (w *Writer) putAt(at profile.Instant, typ typeID, fields ...any) error {
	if err := w.at(at); err != nil {
		return err
	}
	w.put(typ, at.Ticks, fields...)
	return nil
}

// put writes an event with these fields into the open chunk.
func (w *Writer) put(typ typeID, ticks int64, fields ...any) {
	w.event(typ, ticks)
	w.fields(fields...)
	w.end()
}

// fields appends fields to the current event. A field's Go type must be the one that its type in typeTable is written
// as.
func (w *Writer) fields(all ...any) {
	b := w.body
	for _, f := range all {
		switch v := f.(type) {
		case int64:
			b = appendInt(b, uint64(v))
		case time.Duration:
			b = appendInt(b, uint64(v))
		case uint64:
			b = appendInt(b, min(v, math.MaxInt64))
		case int32:
			b = appendInt32(b, v)
		case bool:
			b = appendBool(b, v)
		case string:
			b = appendString(b, v)
		case float64:
			b = binary.BigEndian.AppendUint64(b, math.Float64bits(v))
		case float32:
			b = binary.BigEndian.AppendUint32(b, math.Float32bits(v))
		default:
			panic("jfr: a field of a type that fields cannot write") // not with f, which would then be allocated
		}
	}
	w.body = b
}
