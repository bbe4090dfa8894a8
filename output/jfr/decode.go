package jfr

import (
	"math"
	"time"

	"goprof/profile"
)

// decode makes an Event of the bytes of one.
func (r *Reader) decode(of *class) (*Event, *BadRecording) {
	e := &r.events[r.turn]
	r.turn ^= 1
	*e = Event{Name: of.name, Samples: 1, Fields: e.Fields[:0], stacked: of.stack}
	c := newCursor(r.body, r.base)
	c.bytes(r.bodyAt)
	rec := &r.record
	rec.numbers = [numSlots]uint64{}
	rec.noTexts = of.stack
	if of.stack || of.name == detailName || of.name == sourceName {
		c.value(of, 0, rec)
	} else {
		r.decodeFields(&c, of, e)
	}
	if c.bad != nil {
		return nil, c.bad
	}
	if of.name == sourceName {
		r.turn ^= 1 // this event is not handed out: the sample before it keeps its place
		r.k.sources.keepFirst(rec.numbers[slotType], sourceRef{rec.numbers[slotSource], rec.numbers[slotBuild]})
		return e, nil
	}
	r.fill(e, of)
	return e, nil
}

// fill gives the event what its slots hold.
func (r *Reader) fill(e *Event, of *class) {
	n := &r.record.numbers
	start := int64(n[slotStart])
	e.At = profile.Instant{Wall: r.head.startNanos + r.nanos(start-r.head.startTicks), Ticks: start}
	if t := r.k.thread(n[slotThread]); t != nil {
		e.Thread, e.HasThread = *t, true
	}
	e.Failed = n[slotFailed] != 0
	e.Bytes = int64(n[slotBytes])
	for i := range of.fields {
		switch f := &of.fields[i]; f.slot {
		case slotDuration:
			e.Duration = time.Duration(r.nanos(int64(n[slotDuration])))
		case slotSpan:
			e.Span = time.Duration(r.nanos(int64(n[slotSpan])))
		case slotCPU:
			e.CPU = time.Duration(n[slotCPU])
		case slotSamples:
			e.Samples = int64(min(n[slotSamples], math.MaxInt32))
		case slotLeaf:
			if n[slotLeaf] > 0 {
				e.Leaf = profile.Certainty(min(n[slotLeaf]-1, uint64(profile.NumCertainty-1)))
			}
		case slotTLAB:
			e.TLAB = TLAB(min(n[slotTLAB], uint64(outsideTLAB)))
		case slotState:
			if f.class != nil {
				e.State = r.k.constant(f.class, n[slotState])
			}
		case slotClass:
			e.Class = className(r.k.symbol(r.k.classes.get(n[slotClass]).name))
		case slotSpanID:
			if of.name == detailName {
				e.Link = profile.ParseLink(r.k.resolve(r.record.texts[slotTrace]), r.k.resolve(r.record.texts[slotSpanID]))
			}
		case slotStack:
			e.stack = n[slotStack]
		}
	}
}

// decodeFields reads the fields of an event without a stack one by one, so that they can be shown.
func (r *Reader) decodeFields(c *cursor, of *class, e *Event) {
	for i := range of.fields {
		if !c.step() {
			return
		}
		f := &of.fields[i]
		one := class{name: of.name, fields: of.fields[i : i+1]}
		c.value(&one, 0, &r.record)
		if f.array || f.form == formStruct {
			continue
		}
		shown := Field{Name: f.name}
		switch {
		case f.form == formFloat, f.form == formDouble:
			shown.Real = math.Float64frombits(r.record.numbers[f.slot])
		case f.form == formText:
			shown.Text = r.k.resolve(r.record.texts[f.slot])
		case f.ref && f.class != nil:
			shown.Text = r.k.constant(f.class, r.record.numbers[f.slot])
		default:
			shown.Number = int64(r.record.numbers[f.slot])
		}
		e.Fields = append(e.Fields, shown)
	}
}
