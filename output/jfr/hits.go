package jfr

import (
	"math"
	"slices"
	"strings"

	"goprof/profile"
)

// Samples of events. If the JDK's recorder has the same event, its type is written, so that every viewer knows it.
// Other events get a type of their own: ownEventPrefix and the event's name. In both types, a field of type class holds
// the class that the event is about. This class is not a frame of the stack. So code that redacts recordings, or counts
// classes, finds it.

// The JDK's types.
const (
	allocationEvent  = "jdk.ObjectAllocationSample"
	exceptionEvent   = "jdk.JavaExceptionThrow"
	classDefineEvent = "jdk.ClassDefine"
)

// wallEventName is async-profiler's type for samples of elapsed time.
const wallEventName = "profiler.WallClockSample"

var knownEvents = map[profile.EventKind]struct {
	id   typeID
	name string
}{
	{Name: profile.EventAlloc, Unit: profile.Bytes}: {typeObjectAllocation, allocationEvent},
	{Name: profile.EventExceptions}:                 {typeException, exceptionEvent},
	{Name: profile.EventClassLoad}:                  {typeClassDefine, classDefineEvent},
}

const (
	ownEventPrefix = "goprof.event." // for types that the JDK does not have
	// maxOwnEvents bounds these types. No recording has so many. Samples of further events would get the last type.
	maxOwnEvents = 64
)

// eventType is the type of the events that are a file's samples.
type eventType struct {
	kind profile.EventKind
	id   typeID
	name string // of the type
}

// eventTypes are the event types of a file, in the order of their first samples.
type eventTypes struct {
	list     []eventType
	metadata []byte // with the types that not every file has; nil if there are none yet
	own      int
	last     int  // index in list of the last type of our own
	wall     bool // one in list is async-profiler's type for samples of elapsed time
}

// EventTypeName returns the last part of the name of an event's own type: the letters and digits of its name, and "_".
func EventTypeName(event string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		}
		return '_'
	}, event)
	return name[:min(len(name), maxEventName)]
}

const maxEventName = 100

// of returns the type of an event. isNew: the file did not have the type yet.
func (t *eventTypes) of(kind *profile.EventKind) (found *eventType, isNew bool) {
	for i := range t.list {
		if t.list[i].kind == *kind {
			return &t.list[i], false
		}
	}
	made := eventType{kind: *kind}
	if known, ok := knownEvents[*kind]; ok {
		made.id, made.name = known.id, known.name
	} else if kind.Unit == profile.WallTime && !t.wall { // a second one needs a type of its own, to distinguish them
		t.wall, made.id, made.name = true, typeWallClockSample, wallEventName
	} else if t.own == maxOwnEvents {
		return &t.list[t.last], false
	} else {
		t.last = len(t.list)
		made.id, made.name = typeFirstOwn+typeID(t.own), t.free(ownEventPrefix+EventTypeName(kind.Name))
		t.own++
	}
	t.list = append(t.list, made)
	t.describe()
	return &t.list[len(t.list)-1], true
}

// free returns the name with as many "_" as make it unique.
func (t *eventTypes) free(name string) string {
	for slices.ContainsFunc(t.list, func(e eventType) bool { return e.name == name }) {
		name += "_"
	}
	return name
}

func (t *eventTypes) describe() {
	if t.own == 0 {
		return
	}
	all := slices.Clone(typeTable())
	for i := range t.list {
		if e := &t.list[i]; e.id >= typeFirstOwn {
			all = append(all, e.definition())
		}
	}
	t.metadata = encodeMetadata(all, metadataID+t.own)
}

func (e *eventType) definition() typeDef {
	r := typeRow{e.id, e.name, cut(e.kind.Name), "A sample of an event that goprof was asked for by this name",
		"goprof/Events", "eventThread; stackTrace; about Class About; samples"}
	switch e.kind.Unit {
	case profile.WallTime:
		r.description = "A part of a recording that goprof was asked for by this name"
		r.category, r.fields = inProfiling, wallFields
	case profile.Bytes:
		r.fields = "eventThread; stackTrace; about Class About; bytes size Bytes It Stands For"
	}
	return r.definition()
}

func (w *Writer) hit(s *profile.Sample) error {
	if err := s.Read(); err != nil {
		return err
	}
	typ := w.eventType(s.Event)
	about, code := uint64(0), codeOf(s)
	if s.About && s.Stack != nil && len(s.Stack.Frames) > 0 {
		about = w.pools.class(classKey{name: descriptor(s.Stack.Frames[0].Func.Name)})
	}
	thread, trace := w.pools.thread(&s.Thread), w.pools.stack(&code)
	hits := int32(min(s.Looks(), math.MaxInt32))
	w.event(typ.id, s.At.Ticks)
	b := w.body
	if typ.id == typeException {
		b = append(b, 0) // duration
	}
	b = appendInt(appendInt(b, thread), trace)
	if typ.id == typeException {
		b = append(b, stringNull) // message
	}
	b = appendInt(b, about)
	switch {
	case typ.kind.Unit == profile.Bytes:
		b = appendInt(b, uint64(max(s.Bytes, 0)))
	case typ.id == typeClassDefine:
		b = appendInt32(append(b, 0), hits) // loader
	default:
		b = appendInt32(b, hits)
	}
	w.body = b
	w.end()
	if s.About || s.Link.Known() {
		w.detail(s, s.At.Ticks, thread, leafOf(s.Stack).sure, 0)
	}
	return nil
}

// codeOf returns a sample's stack without the leaf that names the sample's object, because the event has a field for
// the object.
func codeOf(s *profile.Sample) (code profile.Stack) {
	if s.Stack != nil {
		code = *s.Stack
	}
	if s.About && len(code.Frames) > 0 {
		code.Frames = code.Frames[1:]
	}
	return code
}

func (w *Writer) eventType(kind *profile.EventKind) *eventType {
	typ, isNew := w.types.of(kind)
	if isNew {
		w.eventKind(typ)
	}
	return typ
}

func (w *Writer) eventKind(e *eventType) {
	w.put(typeEventKind, w.start.Ticks, e.kind.Name, e.name, weightNames[e.kind.Unit])
	w.unsaved-- // it does not count as an event
}

// unknownClass is profile.UnknownClass in a file. No class has this name. JMC reads a name that begins with a bracket
// as an array, and its rules fail on an array with unknown elements (MethodToolkit.fieldDescToBinaryJLS).
const unknownClass = "unknown class"

// descriptor returns a class's name as in a file: for an array, the JVM's name. className is the opposite.
func descriptor(name string) string {
	if name == profile.UnknownClass {
		return unknownClass
	}
	element, dimensions := name, 0
	for strings.HasSuffix(element, "[]") {
		element = element[:len(element)-2]
		dimensions++
	}
	if dimensions == 0 || element == "" {
		return name
	}
	for letter, primitive := range primitives {
		if primitive == element {
			return strings.Repeat("[", dimensions) + letter
		}
	}
	return strings.Repeat("[", dimensions) + "L" + element + ";"
}
