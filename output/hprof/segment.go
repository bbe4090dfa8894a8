package hprof

import "encoding/binary"

// headOfRecord is the size of a record's header.
const headOfRecord = 9

// segment makes room for a part of n bytes. A part that is larger than a segment gets a segment of its own, which ends
// with the part's last byte.
func (w *Writer) segment(n uint64) {
	if w.open && uint64(len(w.b))+n > segmentSize {
		w.endSegment()
	}
	if w.open {
		return
	}
	w.flush()
	if n > segmentSize {
		w.record(recordSegment, 0)
		binary.BigEndian.PutUint32(w.b[headOfRecord-4:], uint32(n))
		return
	}
	w.record(recordSegment, 0)
	w.open = true
}

func (w *Writer) endSegment() {
	if w.open {
		binary.BigEndian.PutUint32(w.b[headOfRecord-4:], uint32(len(w.b)-headOfRecord))
		w.open = false
	}
	w.flush()
}

// Static is a static field of a class. Field is a field of its instances.
type (
	Static struct {
		Name  uint64
		Type  Type
		Value uint64 // its bits
	}
	Field struct {
		Name uint64
		Type Type
	}
)

// Class is a class as a heap dump describes it.
type Class struct {
	ID, Super, Loader uint64
	InstanceSize      uint32 // size of an instance in the file, including superclasses' fields
	Statics           []Static
	Fields            []Field // without superclasses' fields
}

// maxFields bounds the fields of one kind in a class: their number has two bytes.
const maxFields = 1<<16 - 1

func (w *Writer) Class(c *Class) {
	statics, fields := c.Statics[:min(len(c.Statics), maxFields)], c.Fields[:min(len(c.Fields), maxFields)]
	n := 1 + 7*IDSize + 14 + (IDSize+1)*(len(statics)+len(fields))
	for _, s := range statics {
		n += s.Type.Size()
	}
	w.segment(uint64(n))
	w.u1(partClass)
	w.id(c.ID)
	w.u4(NoTrace)
	w.id(c.Super)
	w.id(c.Loader)
	for range 4 { // signers, protection domain, and two reserved ones
		w.id(0)
	}
	w.u4(c.InstanceSize)
	w.u2(0) // number of constants
	w.u2(uint16(len(statics)))
	for _, s := range statics {
		w.id(s.Name)
		w.u1(byte(s.Type))
		w.value(s.Type, s.Value)
	}
	w.u2(uint16(len(fields)))
	for _, f := range fields {
		w.id(f.Name)
		w.u1(byte(f.Type))
	}
}

func (w *Writer) value(t Type, v uint64) {
	switch t.Size() {
	case 1:
		w.u1(byte(v))
	case 2:
		w.u2(uint16(v))
	case 4:
		w.u4(uint32(v))
	default:
		w.id(v)
	}
}

func (w *Writer) root(kind byte, id uint64, numbers ...uint32) {
	w.segment(1 + IDSize + 4*uint64(len(numbers)))
	w.u1(kind)
	w.id(id)
	for _, n := range numbers {
		w.u4(n)
	}
}

// Roots keep objects alive: a class of the boot loader, a thread, a slot on a thread's stack, a handle of native code
// on a thread, a global handle, or something else.

func (w *Writer) StickyClass(id uint64)                  { w.root(rootSticky, id) }
func (w *Writer) Thread(id uint64, thread, trace uint32) { w.root(rootThread, id, thread, trace) }
func (w *Writer) OnStack(id uint64, thread uint32)       { w.root(rootFrame, id, thread, noFrame) }
func (w *Writer) JNILocal(id uint64, thread uint32)      { w.root(rootJNILocal, id, thread, noFrame) }
func (w *Writer) UnknownRoot(id uint64)                  { w.root(rootUnknown, id) }

// JNIGlobal: handle is the handle's address.
func (w *Writer) JNIGlobal(id, handle uint64) {
	w.segment(1 + 2*IDSize)
	w.u1(rootJNIGlobal)
	w.id(id)
	w.id(handle)
}

// Instance begins an object whose fields have n bytes. The caller then writes these bytes: big-endian, the fields of
// the object's own class first.
func (w *Writer) Instance(id, class uint64, n uint32) {
	w.segment(1 + 2*IDSize + 8 + uint64(n))
	w.u1(partInstance)
	w.id(id)
	w.u4(NoTrace)
	w.id(class)
	w.u4(n)
	w.left = uint64(n)
}

// headOfArray bounds the size of an array's header.
const headOfArray = 1 + 2*IDSize + 8

// MostElements returns how many elements an array of a type may have. A record has no room for more.
func MostElements(t Type) uint64 { return (maxRecord - headOfArray) / uint64(t.Size()) }

// Objects begins an array of n references. n is at most MostElements.
func (w *Writer) Objects(id, class uint64, n uint32) {
	w.left = IDSize * uint64(n)
	w.segment(1 + 2*IDSize + 8 + w.left)
	w.u1(partObjects)
	w.id(id)
	w.u4(NoTrace)
	w.u4(n)
	w.id(class)
}

// Values begins an array of n values. n is at most MostElements.
func (w *Writer) Values(id uint64, t Type, n uint32) {
	w.left = uint64(t.Size()) * uint64(n)
	w.segment(1 + IDSize + 9 + w.left)
	w.u1(partValues)
	w.id(id)
	w.u4(NoTrace)
	w.u4(n)
	w.u1(byte(t))
}

// Room returns a slice for the next bytes of the current object: at most n, and at least one while bytes are missing.
// The caller must fill the whole slice.
func (w *Writer) Room(n int) []byte {
	n = int(min(uint64(n), w.left, segmentSize))
	if len(w.b)+n > cap(w.b) { // the segment belongs to this object alone
		w.flush()
	}
	at := len(w.b)
	w.b = w.b[:at+n]
	w.left -= uint64(n)
	return w.b[at:]
}
