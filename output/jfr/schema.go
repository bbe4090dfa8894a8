package jfr

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
)

const maxValueDepth = 16

// schema is the contents of one chunk's metadata: how each type's values are written.
type schema struct {
	byID   map[int64]*class
	byName map[string]*class
	low    []*class // small ids, by id: each event is looked up
}

// lowTypes bounds the ids that are looked up without a map. The JDK's are below 2,000.
const lowTypes = 1 << 12

// find returns the type with an id. It is nil if there is none.
func (s *schema) find(id uint64) *class {
	if id < uint64(len(s.low)) {
		return s.low[id]
	}
	return s.byID[int64(id)]
}

type class struct {
	id     int64
	name   string
	event  bool
	fields []field
	simple bool   // one field, a string
	flat   bool   // only integers
	slots  []slot // slots of the fields of a flat class
	plain  bool   // no arrays, and no fields with fields of their own
	single bool   // a primitive type or a string, of this form
	form   form
	stack  bool  // an event with a stack trace
	texts  bool  // its texts are also read
	wanted bool  // an event that the reader returns
	events int64 // number of counted ones: Reader.Tally
}

type field struct {
	name  string
	typ   int64
	class *class
	form  form
	ref   bool
	array bool
	slot  slot
}

type form uint8

const (
	formInt form = iota
	formByte
	formFloat
	formDouble
	formText
	formStruct
)

var forms = map[string]form{
	"boolean": formByte, "byte": formByte, "char": formInt, "short": formInt, "int": formInt, "long": formInt,
	"float": formFloat, "double": formDouble, "java.lang.String": formText,
}

// slot is the place of a field's value in a record.
type slot uint8

const (
	noSlot slot = iota
	slotStart
	slotDuration
	slotThread
	slotStack
	slotState
	slotSamples
	slotSpan
	slotCPU
	slotLeaf
	slotTLAB
	slotBytes
	slotClass
	slotName
	slotType
	slotSource
	slotBuild
	slotTID
	slotJavaID
	slotJavaName
	slotVirtual
	slotFrames
	slotMethod
	slotLine
	slotBCI
	slotTruncated
	slotTrace
	slotSpanID
	slotWakerTrace
	slotWakerSpan
	slotTarget
	slotPort
	slotOperation
	numSlots = int(iota)
)

// eventSlots has the fields of events that goprof understands, by their names in the events of the JDK and of
// async-profiler. If an event has several fields for one slot, the last counts: for an allocation in a new TLAB that is
// the TLAB's size, which the sample stands for.
var eventSlots = map[string]slot{
	"startTime": slotStart, "duration": slotDuration,
	"sampledThread": slotThread, "eventThread": slotThread, "thread": slotThread,
	"stackTrace": slotStack, "state": slotState,
	"samples": slotSamples, "timeSpan": slotSpan,
	"samplingPeriod": slotCPU, "cpuTime": slotCPU, "leaf": slotLeaf, "tlab": slotTLAB,
	"weight": slotBytes, "allocationSize": slotBytes, "tlabSize": slotBytes, "bytes": slotBytes,
	"objectClass": slotClass, "thrownClass": slotClass, "definedClass": slotClass, "about": slotClass,
	"traceId": slotTrace, "spanId": slotSpanID, "wakerTraceId": slotWakerTrace, "wakerSpanId": slotWakerSpan,
	"monitorClass": slotClass, "parkedClass": slotClass,
	"path": slotTarget, "address": slotTarget, "target": slotTarget, "port": slotPort, "operation": slotOperation,
}

// sourceSlots are the slots of the source events, which come first in the chunks of our files.
var sourceSlots = map[string]slot{"class": slotType, "file": slotSource, "build": slotBuild}

// constantSlots are the fields of constants that goprof understands.
var constantSlots = map[string]map[string]slot{
	"java.lang.Class": {"name": slotName},
	"java.lang.Thread": {"osName": slotName, "osThreadId": slotTID, "javaName": slotJavaName, "javaThreadId": slotJavaID,
		"virtual": slotVirtual},
	"jdk.types.Method":     {"type": slotType, "name": slotName},
	"jdk.types.StackTrace": {"truncated": slotTruncated, "frames": slotFrames},
	"jdk.types.StackFrame": {"method": slotMethod, "lineNumber": slotLine, "bytecodeIndex": slotBCI, "type": slotType},
}

func newSchema(root *element) *schema {
	s := &schema{byID: make(map[int64]*class), byName: make(map[string]*class)}
	s.add(root, nil)
	s.link()
	return s
}

// add adds the types of an element and its children. of is the class that the element belongs to.
func (s *schema) add(e *element, of *class) {
	switch {
	case e.name == "class":
		of = &class{id: typeNumber(e.attribute("id")), name: e.attribute("name"),
			event: e.attribute("superType") == superEvent}
		s.byID[of.id], s.byName[of.name] = of, of
	case e.name == "field" && of != nil:
		dimension := e.attribute("dimension")
		of.fields = append(of.fields, field{name: e.attribute("name"), typ: typeNumber(e.attribute("class")),
			ref: e.attribute("constantPool") == "true", array: dimension != "" && dimension != "0"})
		of = nil
	case e.name == "annotation" || e.name == "setting":
		of = nil
	}
	for _, child := range e.children {
		s.add(child, of)
	}
}

func typeNumber(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// link finds each field's type and slot.
func (s *schema) link() {
	for _, c := range s.byID {
		s.enter(c)
		slots := constantSlots[c.name]
		if c.event {
			slots = eventSlots
		}
		if c.name == sourceName {
			slots = sourceSlots
		}
		for i := range c.fields {
			f := &c.fields[i]
			f.class = s.byID[f.typ]
			f.slot = slots[f.name]
			f.form = f.formOf()
			c.stack = c.stack || c.event && f.slot == slotStack
		}
		_, c.texts = IOTypes[c.name]
		c.form, c.single = forms[c.name]
		c.simple = len(c.fields) == 1 && c.fields[0].form == formText && !c.fields[0].array
		c.flat = !slices.ContainsFunc(c.fields, func(f field) bool { return f.form != formInt || f.array })
		c.plain = !slices.ContainsFunc(c.fields, func(f field) bool { return f.form == formStruct || f.array })
		if c.flat {
			for i := range c.fields {
				c.slots = append(c.slots, c.fields[i].slot)
			}
		}
	}
}

func (s *schema) enter(c *class) {
	if c.id < 0 || c.id >= lowTypes {
		return
	}
	for int64(len(s.low)) <= c.id {
		s.low = append(s.low, nil)
	}
	s.low[c.id] = c
}

func (f *field) formOf() form {
	if f.ref {
		return formInt
	}
	if f.class != nil {
		if form, ok := forms[f.class.name]; ok {
			return form
		}
	}
	return formStruct
}

// record holds the values of one event or constant, by slot.
type record struct {
	numbers [numSlots]uint64
	texts   [numSlots]text
	frames  []rawFrame
	noTexts bool // texts are skipped
}

type rawFrame struct {
	method, kind uint64
	line, bci    int32
}

// value reads a value of a class. Without a record, the value is skipped.
func (c *cursor) value(of *class, depth int, into *record) {
	if depth > maxValueDepth {
		c.fail("%s: values more than %d deep", of.name, maxValueDepth)
	}
	if of.single { // as some constants are
		c.single(&field{form: of.form, class: of}, depth, into)
		return
	}
	if of.flat {
		c.numbers(of, into)
		return
	}
	if of.plain {
		c.plain(of, depth, into)
		return
	}
	for i := range of.fields {
		if !c.step() {
			return
		}
		f := &of.fields[i]
		if !f.array {
			c.single(f, depth, into)
			continue
		}
		n := c.count(f.least())
		if f.form == formByte {
			c.bytes(n)
			continue
		}
		frames := f.slot == slotFrames && into != nil
		if frames && n > maxFrames-len(into.frames) {
			c.tooManyFrames()
			return
		}
		if f.form == formStruct && f.class != nil && f.class.flat {
			c.flats(n, f.class, frames, into)
			continue
		}
		for range n {
			if !c.step() {
				return
			}
			c.single(f, depth, into)
			if frames {
				into.addFrame()
			}
		}
	}
}

func (c *cursor) tooManyFrames() {
	c.fail("a stack of more than %d frames", maxFrames)
	c.bad.TooMuch = true
}

// flats reads n values of a flat class if they are a stack's frames, and skips others: a recording has millions of
// frames, which are read only when an event refers to them.
func (c *cursor) flats(n int, of *class, frames bool, into *record) {
	if c.steps -= n * (1 + len(of.fields)); c.steps < 0 {
		c.step() // sets the error
		return
	}
	if !frames {
		c.skip(n * len(of.fields))
		return
	}
	into.frames = slices.Grow(into.frames, n)
	c.frames(n, of, into)
}

// frames reads n values of a flat class as frames. Their numbers mostly have one to three bytes.
func (c *cursor) frames(n int, of *class, into *record) {
	b, at := c.b, c.at
	var v [numSlots]uint64
	for range n {
		for _, slot := range of.slots {
			switch {
			case at < len(b) && b[at] < 0x80:
				v[slot] = uint64(b[at])
				at++
			case at+1 < len(b) && b[at+1] < 0x80:
				v[slot] = uint64(b[at]&0x7f) | uint64(b[at+1])<<7
				at += 2
			case at+2 < len(b) && b[at+2] < 0x80:
				v[slot] = uint64(b[at]&0x7f) | uint64(b[at+1]&0x7f)<<7 | uint64(b[at+2])<<14
				at += 3
			default:
				c.at = at
				v[slot] = c.long()
				at = c.at
			}
		}
		into.frames = append(into.frames, rawFrame{method: v[slotMethod], kind: v[slotType],
			line: int32(v[slotLine]), bci: int32(v[slotBCI])})
	}
	c.at = at
}

func (c *cursor) plain(of *class, depth int, into *record) {
	if c.steps -= len(of.fields); c.steps < 0 {
		c.step() // sets the error
		return
	}
	for i := range of.fields {
		f := &of.fields[i]
		if f.form != formInt || into == nil {
			c.single(f, depth, into)
		} else {
			into.numbers[f.slot] = c.int()
		}
	}
}

func (c *cursor) numbers(of *class, into *record) {
	if c.steps -= len(of.fields); c.steps < 0 {
		c.step() // sets the error
		return
	}
	for i := range of.fields {
		if v := c.int(); into != nil {
			into.numbers[of.fields[i].slot] = v
		}
	}
}

// least returns the fewest bytes that a value of the field takes.
func (f *field) least() int {
	switch f.form {
	case formFloat:
		return 4
	case formDouble:
		return 8
	case formStruct:
		return 0
	}
	return 1
}

// single reads one value of a field into a record, or skips it if there is no record.
func (c *cursor) single(f *field, depth int, into *record) {
	switch f.form {
	case formInt:
		if v := c.int(); into != nil {
			into.numbers[f.slot] = v
		}
	case formByte:
		if v := c.byte(); into != nil {
			into.numbers[f.slot] = uint64(v)
		}
	case formFloat:
		if b := c.bytes(4); b != nil && into != nil {
			into.numbers[f.slot] = math.Float64bits(float64(math.Float32frombits(binary.BigEndian.Uint32(b))))
		}
	case formDouble:
		if b := c.bytes(8); b != nil && into != nil {
			into.numbers[f.slot] = binary.BigEndian.Uint64(b)
		}
	case formText:
		t := c.text(into == nil || into.noTexts)
		if into != nil {
			into.texts[f.slot] = t
		}
	case formStruct:
		if f.class == nil {
			c.fail("field %s is of type %d, which there is not", f.name, f.typ)
			return
		}
		if f.slot != slotFrames { // frames have fields of their own
			into = nil
		}
		c.value(f.class, depth+1, into)
	}
}

func (r *record) addFrame() {
	r.frames = append(r.frames, rawFrame{method: r.numbers[slotMethod], kind: r.numbers[slotType],
		line: int32(r.numbers[slotLine]), bci: int32(r.numbers[slotBCI])})
}
