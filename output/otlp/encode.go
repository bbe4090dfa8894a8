package otlp

import (
	"cmp"
	"crypto/sha256"
	"time"

	"goprof/profile"
	"goprof/profile/batch"
	"goprof/profile/naming"
	"goprof/profile/protobuf"
	"goprof/profile/resource"
)

// Encode writes a batch as an ExportProfilesServiceRequest. It has the same fields as a ProfilesData, so a file of it
// is a ProfilesData.
func Encode(b *batch.Batch) []byte {
	e := &encoder{dict: newDictionary(), functions: make(map[*profile.Func]int32), batch: b}
	e.samples()
	scope := protobuf.String(nil, 1, "goprof")
	scope = protobuf.String(scope, 2, clean(b.Meta.Version))
	scoped := protobuf.Bytes(nil, 1, scope)
	profiles := [][]byte{e.profile(profile.Samples, e.timed())}
	if w := b.Weight(); w != profile.Samples {
		profiles = append(profiles, e.profile(w, false))
	}
	whose, words := resourceOf(b.Resource), e.dict.write(nil)
	for _, one := range profiles {
		scoped = protobuf.Bytes(scoped, 2, protobuf.Bytes(one, 7, idOf(whose, words, one)))
	}
	of := protobuf.Bytes(nil, 1, whose)
	of = protobuf.Bytes(of, 2, scoped)
	message := protobuf.Bytes(nil, 1, of)
	return protobuf.Bytes(message, 2, words)
}

// idOf returns the profile_id of a Profile. A batch that is sent twice keeps its id, so that a server can drop the
// second copy.
func idOf(parts ...[]byte) []byte {
	sum := sha256.New()
	for _, part := range parts {
		sum.Write(part)
	}
	return sum.Sum(nil)[:16]
}

func resourceOf(list resource.Attributes) (b []byte) {
	for i := range list {
		a := &list[i]
		pair := protobuf.Text(nil, 1, a.Key)
		value := textValue(a.Text)
		if a.IsInt {
			value = intValue(a.Number)
		}
		b = protobuf.Bytes(b, 1, protobuf.Bytes(pair, 2, value))
	}
	return b
}

type encoder struct {
	dict      *dictionary
	functions map[*profile.Func]int32
	locations []int32
	batch     *batch.Batch
	lines     []line
}

// line is a sample of the message. Stacks that only differ in what OTLP does not hold (bytecode indices) are one line.
type line struct {
	head   []byte // the fields that do not depend on the weight
	points []batch.Point
}

// samples makes the facts about each sample that all profiles share: stack and attributes.
func (e *encoder) samples() {
	known := make(map[string]int)
	for i := range e.batch.Samples {
		s := &e.batch.Samples[i]
		head := protobuf.Uint(nil, 1, uint64(e.stack(s.Stack)))
		head = protobuf.Packed(head, 2, e.attributes(s))
		head = protobuf.Uint(head, 3, uint64(e.link(&s.Link)))
		at, ok := known[string(head)]
		if !ok {
			at = len(e.lines)
			known[string(head)] = at
			e.lines = append(e.lines, line{head: head})
		}
		e.lines[at].points = append(e.lines[at].points, s.Points...)
	}
}

// link returns the index of a span (Link). It is 0 for none.
func (e *encoder) link(l *profile.Link) int32 {
	if !l.Known() {
		return 0
	}
	return e.dict.add(linkTable, protobuf.Bytes(protobuf.Bytes(nil, 1, l.Trace[:]), 2, l.Span[:]))
}

// attributes returns the indices of the attributes of a sample's thread and state.
func (e *encoder) attributes(s *batch.Sum) (list []int32) {
	t := &s.Thread
	if t.TID != 0 {
		list = append(list, e.dict.attribute("thread.id", intValue(int64(t.TID))))
	}
	if name := cmp.Or(t.JavaName, t.Name); name != "" && !t.Virtual {
		list = append(list, e.dict.attribute("thread.name", textValue(clean(name))))
	}
	if t.Virtual {
		list = append(list, e.dict.attribute("thread.name", textValue(clean(cmp.Or(t.JavaName, naming.ThreadLabel(t))))))
		list = append(list, e.dict.attribute("jvm.thread.virtual", protobuf.Uint(nil, 2, 1)))
	}
	if !s.NoState {
		list = append(list, e.dict.attribute("thread.state", textValue(s.State.String())))
	}
	return list
}

// maxRepeats bounds how often a sample's time is repeated if the sample stands for several looks.
const maxRepeats = 64

// timed reports whether each look has its own time. Either all samples of a profile have times, or none.
func (e *encoder) timed() bool {
	for i := range e.batch.Samples {
		for _, p := range e.batch.Samples[i].Points {
			if p.Looks != 0 && p.At <= 0 || p.Looks < 0 || p.Looks > maxRepeats {
				return false
			}
		}
	}
	return true
}

// profile returns a Profile that counts one weight. If looks have times, the Profile has only the times, and each
// counts 1: today's servers read several values of one sample as several types of value.
func (e *encoder) profile(w profile.Weight, timed bool) []byte {
	from, to := e.span()
	b := protobuf.Bytes(nil, 1, e.valueType(w))
	for i := range e.lines {
		l := &e.lines[i]
		one := append([]byte(nil), l.head...)
		n := valueOf(l.points, w)
		switch {
		case n == 0:
			continue // the sample has nothing of this weight
		case timed:
			one = protobuf.PackedFixed64(one, 5, times(l.points))
		default:
			one = protobuf.Packed(one, 4, []int64{n})
		}
		b = protobuf.Bytes(b, 2, one)
	}
	b = protobuf.Fixed64(b, 3, uint64(from))
	b = protobuf.Uint(b, 4, uint64(to-from))
	b = protobuf.Bytes(b, 5, e.periodType()) // one server demands it, even if the period is not known
	return protobuf.Uint(b, 6, uint64(max(e.batch.Meta.Interval, 0)))
}

func valueOf(points []batch.Point, w profile.Weight) (n int64) {
	for i := range points {
		n += points[i].Value(w)
	}
	return n
}

func times(points []batch.Point) (list []uint64) {
	for _, p := range points {
		for range p.Looks {
			list = append(list, uint64(p.At))
		}
	}
	return list
}

// span returns the batch's time, extended to all its looks: servers refuse looks outside of it.
func (e *encoder) span() (from, to int64) {
	from, to = unixNano(e.batch.From), unixNano(e.batch.To)
	for i := range e.batch.Samples {
		for _, p := range e.batch.Samples[i].Points {
			if p.At <= 0 {
				continue
			}
			if from == 0 {
				from = p.At
			}
			from, to = min(from, p.At), max(to, p.At+1)
		}
	}
	return from, max(from, to)
}

func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(t.UnixNano(), 0)
}

func (e *encoder) valueType(w profile.Weight) []byte {
	if of := e.batch.Event; of.Name != "" {
		what, unit := batch.EventValue(of)
		if w != of.Unit { // samples of several events differ by type
			what, unit = batch.SamplesOf(of), "count"
		}
		return e.typeAndUnit(what, unit)
	}
	what, unit := "samples", "count"
	switch w {
	case profile.CPUTime:
		what, unit = "cpu", "nanoseconds"
	case profile.WallTime:
		what, unit = "wall", "nanoseconds"
	case profile.Bytes:
		what, unit = "allocated_space", "bytes"
	}
	return e.typeAndUnit(what, unit)
}

// periodType returns which time is between two looks: CPU time, or elapsed time.
func (e *encoder) periodType() []byte {
	if of := e.batch.Event; of.Name != "" && !of.Unit.IsTime() {
		return e.typeAndUnit(batch.EventValue(of))
	}
	if m := e.batch.Meta.Mode; m == profile.ModeWall || m == profile.ModeOffCPU {
		return e.typeAndUnit("wall", "nanoseconds")
	}
	return e.typeAndUnit("cpu", "nanoseconds")
}

func (e *encoder) typeAndUnit(what, unit string) []byte {
	b := protobuf.Uint(nil, 1, uint64(e.dict.text(what)))
	return protobuf.Uint(b, 2, uint64(e.dict.text(unit)))
}
