package jfr

import (
	"cmp"
	"math"
	"net"
	"strconv"
	"time"

	"goprof/profile"
)

// decode fills the reader's Event from the bytes of an event. It keeps sources. It ignores details: addDetail reads the
// details of samples, so a detail here belongs to no sample.
func (r *Reader) decode(of *class) (bad *BadRecording) {
	switch {
	case of.name == detailName:
		return nil
	case of.name == sourceName:
		bad = r.decodeRecord(of)
		if n := &r.record.numbers; bad == nil {
			r.k.sources.keepFirst(n[slotType], sourceRef{n[slotSource], n[slotBuild]})
		}
		return bad
	}
	e, fields := &r.event, r.event.Fields[:0]
	*e = Event{} // each field is set in place: see cursor.open
	e.Name, e.Samples, e.Fields, e.stacked = of.name, 1, fields, of.stack
	if of.stack && !r.allFields {
		bad = r.decodeRecord(of)
	} else {
		bad = r.decodeFields(of)
	}
	if bad == nil {
		r.fill(e, of)
	}
	return bad
}

// decodeRecord reads those fields of an event that goprof understands.
func (r *Reader) decodeRecord(of *class) *BadRecording {
	var c cursor
	r.begin(&c, of)
	c.value(of, 0, &r.record)
	return c.bad
}

// begin empties the record, and sets a cursor before the fields of an event.
func (r *Reader) begin(c *cursor, of *class) {
	c.open(r.body, r.base)
	c.bytes(r.bodyAt)
	r.record.numbers = [numSlots]uint64{}
	r.record.noTexts = of.stack && !r.allFields && !of.texts
}

func (r *Reader) fill(e *Event, of *class) {
	n := &r.record.numbers
	start := int64(n[slotStart])
	e.At = profile.Instant{Wall: r.head.startNanos + r.nanos(start-r.head.startTicks), Ticks: start}
	e.thread = n[slotThread]
	if t := r.k.thread(e.thread); t != nil {
		e.Thread, e.HasThread = *t, true
	}
	e.Bytes = int64(n[slotBytes])
	r.tell(e, of)
}

// link returns the span with the ids in two slots.
func (r *Reader) link(trace, span slot) profile.Link {
	t := &r.record.texts
	return profile.ParseLink(r.k.resolve(t[trace]), r.k.resolve(t[span]))
}

// tell fills in the fields of e that the type has. From a detail, it fills in the detail's facts.
func (r *Reader) tell(e *Event, of *class) {
	n := &r.record.numbers
	for i := range of.fields {
		switch f := &of.fields[i]; f.slot {
		case slotDuration:
			e.Duration = time.Duration(r.nanos(int64(n[slotDuration])))
		case slotSpan:
			e.Span = time.Duration(r.nanos(int64(n[slotSpan])))
		case slotCPU:
			e.CPU = time.Duration(r.nanos(int64(n[slotCPU])))
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
			e.Class = className(r.k.symbols.get(r.k.classes.get(n[slotClass]).name))
		case slotSpanID:
			if of.name == detailName {
				e.Link = r.link(slotTrace, slotSpanID)
			}
		case slotWakerSpan:
			if of.name == detailName {
				e.WakerLink = r.link(slotWakerTrace, slotWakerSpan)
			}
		case slotStack:
			e.stack = n[slotStack]
		case slotTarget:
			if of.texts && !r.allFields {
				e.Target = cmp.Or(r.k.resolve(r.record.texts[slotTarget]), e.Target)
			}
		case slotPort:
			if p := n[slotPort]; of.texts && p > 0 && p < 1<<16 && e.Target != "" {
				e.Target = net.JoinHostPort(e.Target, strconv.Itoa(int(p)))
			}
		case slotOperation:
			if of.texts && !r.allFields {
				e.Operation = r.k.resolve(r.record.texts[slotOperation])
			}
		}
	}
}

// decodeFields reads the fields of an event without a stack one by one, for display.
func (r *Reader) decodeFields(of *class) *BadRecording {
	var c cursor
	r.begin(&c, of)
	for i := range of.fields {
		if !c.step() {
			break
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
			shown.Form, shown.Real = RealField, math.Float64frombits(r.record.numbers[f.slot])
		case f.form == formText:
			shown.Form, shown.Text = TextField, r.k.resolve(r.record.texts[f.slot])
		case f.ref && f.class != nil:
			key := r.record.numbers[f.slot]
			shown.Form, shown.Text = TextField, r.refText(f.class, key)
			if shown.Text == "" && key != 0 {
				shown.Form = UnreadField
			}
		default:
			shown.Number = int64(r.record.numbers[f.slot])
		}
		r.event.Fields = append(r.event.Fields, shown)
	}
	return c.bad
}

// refText returns the text of a constant: a class, a thread, or a structure that is only a string.
func (r *Reader) refText(of *class, key uint64) string {
	switch of.name {
	case "java.lang.Class":
		return className(r.k.symbols.get(r.k.classes.get(key).name))
	case "java.lang.Thread":
		if t := r.k.thread(key); t != nil {
			return cmp.Or(t.JavaName, t.Name)
		}
		return ""
	}
	return r.k.constant(of, key)
}
