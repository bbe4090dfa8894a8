package jfr

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"math/bits"
	"slices"
	"time"

	"goprof/profile"
)

// Bounds of what is read at a time.
const (
	maxMetadata  = 2 << 20 // bytes; the JDK's is 100 KB, and each element takes up to 30 times its size
	maxConstants = 1 << 30 // bytes of one chunk's checkpoints, which are kept while the chunk is read
	maxEvent     = 16 << 20
	eventBuffer  = 256 << 10 // bytes of events
)

// spareSpace bounds the unused room of the buffer for a chunk's metadata and constants. The next chunk needs about as
// much as this one.
const spareSpace = 1 << 20

// Event is one event of a recording. The Event and its Stack are valid until the next call of Next. Funcs and texts
// stay valid.
type Event struct {
	Name      string
	At        profile.Instant // Ticks are the file's own: ns in goprof's files, any unit in the JDK's
	Duration  time.Duration
	Thread    profile.Thread
	HasThread bool
	Stack     *profile.Stack // nil without a stack, and until it is read: see Reader.NumberStacks
	// StackNumber is different for different stacks, and mostly the same for equal ones; 0 without frames.
	StackNumber uint64
	State       string        // of a sample: STATE_RUNNABLE
	Samples     int64         // how many looks a sample stands for: 1 if the event has no number
	Span        time.Duration // of a wall sample: the time that it stands for
	CPU         time.Duration // of a sample: the CPU time that it stands for
	Leaf        profile.Certainty
	Link        profile.Link
	WakerLink   profile.Link
	Bytes       int64  // of an allocation: the bytes that it stands for
	TLAB        TLAB   // of an allocation in goprof's files
	Target      string // the file or peer of a call that reads or writes
	Operation   string // what such a call does, unless its type shows it
	Class       string // of the object or the monitor
	Fields      []Field

	stacked bool   // events of its type can have a stack
	stack   uint64 // key of its stack, if there is one
	thread  uint64 // key of its thread
}

// Field is a field of an event without a stack: a text, an integer or a real number.
type Field struct {
	Name   string
	Form   FieldForm
	Text   string
	Number int64
	Real   float64
}

// FieldForm is which part of a Field holds its value.
type FieldForm uint8

const (
	NumberField FieldForm = iota
	RealField
	TextField   // Text is empty if the event has none
	UnreadField // the constant that it refers to is not read, or is not in the file
)

// ProfileState returns the sample's state as a profile.State, if its name is known.
func (e *Event) ProfileState() (profile.State, bool) {
	if s := slices.Index(stateNames, e.State); s >= 0 {
		return profile.State(s), true
	}
	return 0, false
}

// Reader reads a recording, event by event, in the order of the file. It holds the constants of the present chunk, and
// one event at a time.
type Reader struct {
	file io.ReaderAt
	size int64
	want func(name string, stack bool) bool

	chunk    int64 // offset of the next chunk
	chunks   int
	start    int64 // offset of the open chunk
	head     header
	schema   *schema
	metadata []byte // the bytes that the schema was made from
	k        constants
	stacks   stackMaker
	buf      *bufio.Reader
	at       int64  // offset of the next event
	end      int64  // of the chunk
	space    []byte // of the chunk's metadata and constants
	body     []byte // the event's bytes with its size and type, until the next one is read
	large    []byte // a body that is too large for the buffer
	bodyAt   int    // where its fields begin
	base     int64  // its offset
	record   record
	event    Event
	from     int64 // time covered by all chunks
	to       int64
	tally    map[string]int64 // nil: not wanted
	noStacks bool
	// noDetails leaves out the details of samples.
	noDetails bool
	allFields bool
	numbered  bool // stacks are read only when they are asked for
	threads   func([]profile.Thread)
	err       error
}

// NewReader returns a reader for a file of so many bytes. want chooses events, by name and by whether they have a stack
// trace. If it is nil, the reader returns all events with a stack trace.
func NewReader(file io.ReaderAt, size int64, want func(name string, stack bool) bool) *Reader {
	if want == nil {
		want = func(_ string, stack bool) bool { return stack }
	}
	return &Reader{file: file, size: size, want: want, from: math.MaxInt64}
}

// NoStacks leaves out the stacks of all events. Then they are not even skipped. Call it before Next.
func (r *Reader) NoStacks() { r.noStacks = true }

// NoSamples leaves out samples: their stacks, and the details after them. Call it before Next.
func (r *Reader) NoSamples() { r.noStacks, r.noDetails = true, true }

// AllFields makes the reader return all events with their fields, including events with stacks. Then stacks are left
// out. Call it before Next.
func (r *Reader) AllFields() { r.allFields, r.noStacks, r.noDetails = true, true, true }

// Threads makes the reader report the threads of each chunk before the events of the chunk, sorted by key. Call it
// before Next.
func (r *Reader) Threads(told func([]profile.Thread)) { r.threads = told }

// NumberStacks gives events the numbers of their stacks. Then only ReadStack reads the stack itself: a caller that
// knows the number need not read the stack again. Call it before Next.
func (r *Reader) NumberStacks() { r.numbered = true }

// Chunks returns how many chunks the reader has begun.
func (r *Reader) Chunks() int { return r.chunks }

// Range returns the time that the chunks so far cover, by their headers.
func (r *Reader) Range() (from, to time.Time) { return time.Unix(0, r.from), time.Unix(0, r.to) }

// Ended reports whether the recorder ended with the newest chunk so far. In the JDK's own files this means that the JVM
// ended. In goprof's files it means that the recording was ended.
func (r *Reader) Ended() bool { return r.head.final }

// maxTally bounds how many names of events are counted. The JDK has 200.
const maxTally = 1 << 12

// Tally makes the reader count all events in the file, wanted or not.
func (r *Reader) Tally() { r.tally = make(map[string]int64) }

// Counts returns how many events of each name the reader has passed. The events of the open chunk are missing, except
// after the end or an error.
func (r *Reader) Counts() map[string]int64 { return r.tally }

// count adds the events of the open chunk.
func (r *Reader) count() {
	if r.tally == nil || r.schema == nil {
		return
	}
	for _, c := range r.schema.byID {
		if _, known := r.tally[c.name]; c.events > 0 && (known || len(r.tally) < maxTally) {
			r.tally[c.name] += c.events
		}
		c.events = 0
	}
}

// TypeName returns the name of a type of the open chunk, by its number as in jdk.ActiveSetting. It is empty if there is
// none.
func (r *Reader) TypeName(id int64) string {
	if c := r.schema.byID[id]; c != nil {
		return c.name
	}
	return ""
}

// Nanos reports whether the clock of the open chunk counts nanoseconds, as System.nanoTime does.
func (r *Reader) Nanos() bool { return r.head.ticksPerSec == int64(time.Second) }

// Next returns the next event, which is valid until the next call. At the end it returns io.EOF. In a damaged file it
// returns a *BadRecording.
func (r *Reader) Next() (*Event, error) {
	e := r.read()
	if e == nil {
		return nil, r.err
	}
	if r.stacks.ours && e.stacked && !r.noDetails {
		r.addDetail(e)
	}
	if err := r.identify(e); err != nil {
		return nil, err
	}
	return e, nil
}

// addDetail reads the detail after a sample, and adds its facts to the sample. Both are in the same chunk.
func (r *Reader) addDetail(e *Event) {
	if r.at >= r.end {
		return
	}
	if h, bad := r.peek(); bad != nil || h.of == nil || !h.of.wanted || h.of.name != detailName {
		return // errors there are reported when it is read
	}
	of, bad := r.nextEvent()
	if bad == nil {
		bad = r.decodeRecord(of)
	}
	if bad != nil {
		r.fail(bad)
		return
	}
	if n := &r.record.numbers; int64(n[slotStart]) == e.At.Ticks && n[slotThread] == e.thread {
		r.tell(e, of)
	}
}

// identify gives an event its stack, or the number of its stack.
func (r *Reader) identify(e *Event) error {
	if !e.stacked {
		return nil
	}
	number, bad := r.stacks.number(e.stack)
	if bad != nil {
		return r.fail(bad)
	}
	if e.StackNumber = number; r.numbered && number != 0 {
		return nil
	}
	return r.ReadStack(e)
}

// ReadStack reads the stack of the event that Next returned last.
func (r *Reader) ReadStack(e *Event) error {
	s, bad := r.stacks.stack(e.stack)
	if bad != nil {
		return r.fail(bad)
	}
	e.Stack = s
	return nil
}

// Events with facts about other events.
const (
	detailName = "goprof.SampleDetail"
	sourceName = "goprof.Source"
)

// read returns the next wanted event. If it returns nil, r.err says why.
func (r *Reader) read() *Event {
	for r.err == nil {
		if r.at >= r.end {
			r.count()
			r.nextChunk()
			continue
		}
		of, bad := r.nextEvent()
		if bad == nil && of != nil {
			bad = r.decode(of)
		}
		switch {
		case bad != nil:
			r.fail(bad)
		case of != nil && of.name != sourceName && of.name != detailName:
			return &r.event
		}
	}
	return nil
}

func (r *Reader) fail(bad *BadRecording) error {
	r.count()
	r.err = bad
	return bad
}

func (r *Reader) bad(offset int64, problem string) *BadRecording {
	return &BadRecording{Offset: offset, Problem: problem}
}

// nextChunk reads a chunk's header, metadata and constants.
func (r *Reader) nextChunk() {
	r.start = r.chunk
	if r.start == r.size && r.chunks > 0 {
		r.err = io.EOF
		return
	}
	if bad := r.readHeader(); bad != nil {
		r.err = bad
		return
	}
	r.chunks++
	r.from = min(r.from, r.head.startNanos)
	r.to = max(r.to, r.head.startNanos+r.head.nanos)
	r.chunk += r.head.size
	r.end = r.chunk
	r.emptySpace()
	if bad := r.readMetadata(); bad != nil {
		r.err = bad
		return
	}
	r.choose()
	if bad := r.readConstants(); bad != nil {
		r.err = bad
		return
	}
	if r.threads != nil {
		r.threads(r.k.allThreads())
	}
	r.stacks.begin(&r.k, r.schema)
	r.at = r.start + headerSize
	events := io.NewSectionReader(r.file, r.at, r.end-r.at)
	if r.buf == nil {
		r.buf = bufio.NewReaderSize(nil, eventBuffer)
	}
	r.buf.Reset(events)
}

func (r *Reader) readHeader() *BadRecording {
	b := make([]byte, headerSize)
	n, _ := r.file.ReadAt(b, r.start)
	switch {
	case n >= len(magic) && string(b[:len(magic)]) != magic, n < len(magic) && r.chunks == 0:
		return r.bad(r.start, "this is no Flight Recorder file: a chunk begins with FLR")
	case n < headerSize:
		return r.cutOff()
	case binary.BigEndian.Uint16(b[4:]) != majorVersion:
		return r.bad(r.start+4, "a format other than 2.x")
	}
	at := 8
	for _, v := range []*int64{&r.head.size, &r.head.constants, &r.head.metadata, &r.head.startNanos, &r.head.nanos,
		&r.head.startTicks, &r.head.ticksPerSec} {
		*v = int64(binary.BigEndian.Uint64(b[at:]))
		at += 8
	}
	h := &r.head
	h.final = b[67]&finalChunk != 0
	switch {
	case b[64] != 0 || h.size == 0 || h.constants == 0 || h.metadata == 0 || h.size > r.size-r.start:
		return r.cutOff()
	case b[67]&compressedInts == 0:
		return r.bad(r.start+67, "numbers that are not compressed")
	case h.size < headerSize:
		return r.bad(r.start+8, "a chunk shorter than its header")
	case h.constants < headerSize || h.constants >= h.size:
		return r.bad(r.start+16, "constants outside the chunk")
	case h.metadata < headerSize || h.metadata >= h.size:
		return r.bad(r.start+24, "metadata outside the chunk")
	case h.ticksPerSec <= 0:
		return r.bad(r.start+56, "a clock that does not go")
	}
	return nil
}

func (r *Reader) cutOff() *BadRecording {
	return &BadRecording{Offset: r.start, Incomplete: true,
		Problem: "the chunk that begins here was never finished, or is cut off"}
}

// big reads a whole event of the given type, and returns a cursor after its size and type.
func (r *Reader) big(offset int64, typ typeID, most int64) (cursor, *BadRecording) {
	b := make([]byte, min(16, r.end-offset))
	if _, err := r.file.ReadAt(b, offset); err != nil {
		return cursor{}, r.bad(offset, err.Error())
	}
	c := newCursor(b, offset)
	size := c.int()
	if c.bad != nil {
		return c, c.bad
	}
	if size > uint64(r.end-offset) {
		return c, r.bad(offset, "an event that reaches beyond its chunk")
	}
	if size > uint64(most) {
		bad := r.bad(offset, "more metadata or constants than are read")
		bad.TooMuch = true
		return c, bad
	}
	head := c.at
	b = r.room(int(size))
	if _, err := r.file.ReadAt(b, offset); err != nil {
		return c, r.bad(offset, err.Error())
	}
	c = newCursor(b, offset)
	c.bytes(head)
	if got := c.int(); c.bad == nil && got != uint64(typ) {
		c.fail("event type %d where %d should be", got, typ)
	}
	return c, c.bad
}

// emptySpace empties the buffer for the next chunk. It drops a buffer that was mostly unused: otherwise one large chunk
// would keep the memory until the end of the file.
func (r *Reader) emptySpace() {
	if cap(r.space) > 2*len(r.space)+spareSpace {
		r.space = nil
	}
	r.space = r.space[:0]
}

// room returns n bytes that the caller may use until the chunk ends.
func (r *Reader) room(n int) []byte {
	if n > cap(r.space)-len(r.space) {
		r.space = make([]byte, 0, n+min(n/8, spareSpace))
	}
	from := len(r.space)
	r.space = r.space[:from+n]
	return r.space[from : from+n : from+n]
}

func (r *Reader) readMetadata() *BadRecording {
	c, bad := r.big(r.start+r.head.metadata, typeMetadata, maxMetadata)
	if bad != nil {
		return bad
	}
	c.int() // start
	if r.schema != nil && bytes.Equal(c.b[c.at:], r.metadata) {
		return c.bad
	}
	r.metadata = append(r.metadata[:0], c.b[c.at:]...)
	root, _ := readTree(&c)
	r.schema = newSchema(root)
	return c.bad
}

func (r *Reader) readConstants() *BadRecording {
	r.k.begin()
	for _, c := range r.schema.byID {
		r.k.wantStacks = r.k.wantStacks || c.wanted && c.stack && !r.noStacks
	}
	return r.eachCheckpoint(func(c *cursor) int64 {
		return eachConstant(c, r.schema, r.k.wantStacks, &r.k.met, r.k.one)
	})
}

// eachCheckpoint reads the checkpoints from the last to the first. Each is before the one that leads to it. read
// returns the distance to the next one to read.
func (r *Reader) eachCheckpoint(read func(c *cursor) (back int64)) *BadRecording {
	total := int64(0)
	for at := r.head.constants; ; {
		c, bad := r.big(r.start+at, typeCheckpoint, maxConstants-total)
		if bad != nil {
			return bad
		}
		total += int64(len(c.b))
		back := read(&c)
		switch {
		case c.bad != nil:
			return c.bad
		case back == 0:
			return nil
		case back > 0 || at+back < headerSize:
			return r.bad(r.start+at, "the constants before these lie behind them, or outside the chunk")
		}
		at += back
	}
}

// choose finds which events are wanted.
func (r *Reader) choose() {
	for _, c := range r.schema.byID {
		belongs := c.name == detailName && !r.noDetails || c.name == sourceName
		c.wanted = c.event && (belongs || r.want(c.name, c.stack))
	}
}

type eventHead struct {
	of   *class // nil if the file does not define its type
	size uint64
	body int // where its fields begin
}

// peek reads the beginning of the next event without consuming it.
func (r *Reader) peek() (h eventHead, bad *BadRecording) {
	b, _ := r.buf.Peek(18)
	var c cursor
	c.open(b, r.at)
	h.size = c.int()
	if h.size == uint64(c.at) {
		c.fail("an event of nothing")
	}
	typ := c.int()
	if c.bad != nil {
		return h, c.bad
	}
	if h.size > uint64(r.end-r.at) || h.size < uint64(c.at) {
		return h, r.bad(r.at, "an event that reaches beyond its chunk, or has no end")
	}
	h.of, h.body = r.schema.find(typ), c.at
	return h, nil
}

// nextEvent reads an event's bytes after its type into body. It returns nil if the event is not wanted.
func (r *Reader) nextEvent() (*class, *BadRecording) {
	h, bad := r.peek()
	if bad != nil {
		return nil, bad
	}
	if h.of != nil && h.of.event {
		h.of.events++
	}
	at := r.at
	r.at += int64(h.size)
	if h.of == nil || !h.of.wanted {
		return nil, r.skip(int64(h.size), at)
	}
	if h.size > maxEvent {
		return nil, &BadRecording{Offset: at, Problem: "an event of more than 16 MiB", TooMuch: true}
	}
	r.bodyAt, r.base = h.body, at
	return h.of, r.readBody(int(h.size), at)
}

// readBody reads an event into body. A small event stays in the read buffer.
func (r *Reader) readBody(size int, at int64) *BadRecording {
	var err error
	if size <= eventBuffer {
		if r.body, err = r.buf.Peek(size); err == nil {
			_, err = r.buf.Discard(size)
		}
	} else {
		r.large = slices.Grow(r.large[:0], size)[:size]
		r.body = r.large
		_, err = io.ReadFull(r.buf, r.body)
	}
	if err != nil {
		return r.bad(at, err.Error())
	}
	return nil
}

// skip skips bytes of the chunk. It does not read a large part, but seeks past it.
func (r *Reader) skip(n, at int64) *BadRecording {
	if n <= int64(r.buf.Buffered()) || n < 1<<20 {
		if _, err := r.buf.Discard(int(n)); err != nil {
			return r.bad(at, err.Error())
		}
		return nil
	}
	r.buf.Reset(io.NewSectionReader(r.file, r.at, r.end-r.at))
	return nil
}

// nanos converts a length by the file's clock to ns.
func (r *Reader) nanos(ticks int64) int64 {
	if r.head.ticksPerSec == int64(time.Second) {
		return ticks
	}
	if ticks < 0 {
		return -r.nanos(-max(ticks, -math.MaxInt64))
	}
	hi, lo := bits.Mul64(uint64(ticks), uint64(time.Second))
	per := uint64(r.head.ticksPerSec)
	if hi >= per {
		return math.MaxInt64
	}
	ns, _ := bits.Div64(hi, lo, per)
	return int64(min(ns, math.MaxInt64))
}
