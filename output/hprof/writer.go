package hprof

import (
	"encoding/binary"
	"io"
	"time"
)

// Type is the type of a field, or of an array's elements.
type Type uint8

const (
	Object  Type = 2
	Boolean Type = 4
	Char    Type = 5
	Float   Type = 6
	Double  Type = 7
	Byte    Type = 8
	Short   Type = 9
	Int     Type = 10
	Long    Type = 11
)

// IDSize is the size of a reference.
const IDSize = 8

// TypeOf returns the type for the first byte of a descriptor (JVMS 4.3.2).
func TypeOf(descriptor byte) (t Type, ok bool) {
	switch descriptor {
	case 'L', '[':
		return Object, true
	case 'Z':
		return Boolean, true
	case 'C':
		return Char, true
	case 'F':
		return Float, true
	case 'D':
		return Double, true
	case 'B':
		return Byte, true
	case 'S':
		return Short, true
	case 'I':
		return Int, true
	case 'J':
		return Long, true
	}
	return 0, false
}

// Size returns the size of a value of this type in the file.
func (t Type) Size() int {
	switch t {
	case Boolean, Byte:
		return 1
	case Char, Short:
		return 2
	case Float, Int:
		return 4
	}
	return 8
}

// Records, and the parts of a segment.
const (
	recordString  = 0x01
	recordClass   = 0x02
	recordFrame   = 0x04
	recordTrace   = 0x05
	recordSegment = 0x1c
	recordEnd     = 0x2c

	rootUnknown   = 0xff
	rootJNIGlobal = 0x01
	rootJNILocal  = 0x02
	rootFrame     = 0x03
	rootSticky    = 0x05
	rootThread    = 0x08
	partClass     = 0x20
	partInstance  = 0x21
	partObjects   = 0x22
	partValues    = 0x23
)

const (
	// segmentSize is the size at which a segment is written.
	segmentSize = 1 << 20
	// maxRecord bounds a record: its length has four bytes.
	maxRecord = 1<<32 - 1
	// NoTrace is the number of the trace without frames. NewWriter writes it. All objects have it, because it is not known
	// where they were allocated.
	NoTrace = 1
	// noFrame: the frame of a root on a stack is not known.
	noFrame = 0xffffffff
)

type Writer struct {
	w       io.Writer
	b       []byte // the current record or segment
	open    bool   // b is a segment
	left    uint64 // missing bytes of the current object
	written int64
	err     error
}

func NewWriter(w io.Writer, at time.Time) *Writer {
	x := &Writer{w: w, b: make([]byte, 0, segmentSize+1<<16)}
	x.b = append(x.b, "JAVA PROFILE 1.0.2\x00"...)
	x.u4(IDSize)
	x.id(uint64(at.UnixMilli()))
	x.Trace(NoTrace, 0, nil)
	return x
}

func (w *Writer) Err() error { return w.err }

// Written returns the number of bytes that were written to the file.
func (w *Writer) Written() int64 { return w.written }

func (w *Writer) u1(v byte)   { w.b = append(w.b, v) }
func (w *Writer) u2(v uint16) { w.b = binary.BigEndian.AppendUint16(w.b, v) }
func (w *Writer) u4(v uint32) { w.b = binary.BigEndian.AppendUint32(w.b, v) }
func (w *Writer) id(v uint64) { w.b = binary.BigEndian.AppendUint64(w.b, v) }

// record begins a record whose body has n bytes.
func (w *Writer) record(tag byte, n int) {
	if len(w.b)+n > segmentSize {
		w.flush()
	}
	w.u1(tag)
	w.u4(0) // microseconds since the time in the header
	w.u4(uint32(n))
}

func (w *Writer) flush() {
	if w.err == nil && len(w.b) > 0 {
		n, err := w.w.Write(w.b)
		w.written += int64(n)
		w.err = err
	}
	w.b = w.b[:0]
}

// String writes a name, and the number that other records refer to it by.
func (w *Writer) String(id uint64, text string) {
	w.record(recordString, IDSize+len(text))
	w.id(id)
	w.b = append(w.b, text...)
}

// LoadClass writes that a class is loaded. serial is the class's number in frames. id is the number of its
// java.lang.Class.
func (w *Writer) LoadClass(serial uint32, id, name uint64) {
	w.record(recordClass, 8+2*IDSize)
	w.u4(serial)
	w.id(id)
	w.u4(NoTrace)
	w.id(name)
}

// Frame is one frame of a thread. Line is -1 if it is not known, and -3 in a native method.
type Frame struct {
	ID, Method, Descriptor, File uint64
	Class                        uint32 // 0: not known
	Line                         int32
}

func (w *Writer) Frame(f Frame) {
	w.record(recordFrame, 4*IDSize+8)
	w.id(f.ID)
	w.id(f.Method)
	w.id(f.Descriptor)
	w.id(f.File)
	w.u4(f.Class)
	w.u4(uint32(f.Line))
}

// Trace writes the stack of a thread, topmost frame first.
func (w *Writer) Trace(serial, thread uint32, frames []uint64) {
	w.record(recordTrace, 12+IDSize*len(frames))
	w.u4(serial)
	w.u4(thread)
	w.u4(uint32(len(frames)))
	for _, f := range frames {
		w.id(f)
	}
}

func (w *Writer) Close() error {
	w.endSegment()
	w.record(recordEnd, 0)
	w.flush()
	return w.err
}
