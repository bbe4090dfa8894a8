package heapdump

import (
	"encoding/binary"

	"goprof/output/hprof"
	"goprof/vmstructs"
)

// scratchSize is how many bytes of an array are read at once.
const scratchSize = 1<<20 + 8

// window is a copy of the next part of the heap. Objects are visited in the order of their addresses.
type window struct {
	heap  *vmstructs.Heap
	b     []byte
	start uint64
	end   uint64 // the end of the area
}

const windowSize = 1 << 20

// bytes returns n bytes of an object. It returns nil if they cannot be read.
func (w *window) bytes(addr, n uint64) []byte {
	if at := addr - w.start; addr >= w.start && at+n <= uint64(len(w.b)) {
		return w.b[at : at+n]
	}
	if w.b == nil {
		w.b = make([]byte, windowSize+maxInstance)
	}
	for _, size := range [...]uint64{max(n, min(windowSize, w.end-addr)), n} {
		w.b, w.start = w.b[:size], addr
		if w.heap.Bytes(addr, w.b) == nil {
			return w.b[:n]
		}
	}
	w.b = w.b[:0]
	return nil
}

func (d *dumping) object(o *vmstructs.Object) {
	if d.err != nil || o.Class.Filler || d.out.Err() != nil {
		return
	}
	c := d.last
	if c == nil || c.Klass != o.Class.Klass {
		if c = d.classes[o.Class.Klass]; c == nil {
			d.res.Unknown += o.Bytes
			return
		}
		d.last = c
	}
	if c.Klass == d.reader.MirrorClass && d.standsForClass(o) {
		return
	}
	switch {
	case d.isArray(o) != (c.element != 0), uint64(c.taken) > o.Bytes:
		d.res.Unknown += o.Bytes
		return
	case c.element != 0:
		d.array(o, c)
	case !d.instance(o, c):
		d.res.Lost += o.Bytes
		return
	}
	d.res.Objects, d.res.Bytes = d.res.Objects+1, d.res.Bytes+o.Bytes
	if c.chunk {
		d.chunk(o)
	}
}

// standsForClass reports whether an object is the java.lang.Class of a class. The dump has the class instead. Like
// HotSpot's dumps, it also leaves out the java.lang.Class of an archived class that is not loaded.
func (d *dumping) standsForClass(o *vmstructs.Object) bool {
	if d.mirrors[o.Addr] {
		d.res.Objects, d.res.Bytes = d.res.Objects+1, d.res.Bytes+o.Bytes
		return true
	}
	b := d.window.bytes(o.Addr, min(o.Bytes, maxInstance))
	return b != nil && !d.reader.OfPrimitive(b)
}

func (d *dumping) isArray(o *vmstructs.Object) bool { return o.Length >= 0 }

// instance writes an object that is not an array. It returns false if the object cannot be read.
func (d *dumping) instance(o *vmstructs.Object, c *class) bool {
	b := d.window.bytes(o.Addr, min(o.Bytes, maxInstance))
	if b == nil {
		return false
	}
	d.out.Instance(o.Addr, c.Mirror, c.size)
	to := d.out.Room(int(c.size))
	for _, s := range c.plan {
		at := b[min(int(s.at), len(b)):]
		value := uint64(0)
		if len(at) >= d.sizeOf(s.kind) {
			value = d.valueOf(s.kind, at)
		}
		size := s.kind.Size()
		put(to[:size], value)
		to = to[size:]
	}
	return true
}

// put writes a value, big-endian.
func put(to []byte, value uint64) {
	switch len(to) {
	case 1:
		to[0] = byte(value)
	case 2:
		binary.BigEndian.PutUint16(to, uint16(value))
	case 4:
		binary.BigEndian.PutUint32(to, uint32(value))
	case 8:
		binary.BigEndian.PutUint64(to, value)
	}
}

// array writes an array. It reads a large array in several steps.
func (d *dumping) array(o *vmstructs.Object, c *class) {
	n := min(uint64(o.Length), hprof.MostElements(c.element))
	d.res.Cut += o.Length - int64(n)
	width := uint64(d.sizeOf(c.element))
	if c.element == hprof.Object {
		d.out.Objects(o.Addr, c.Mirror, uint32(n))
	} else {
		d.out.Values(o.Addr, c.element, uint32(n))
	}
	addr := o.Addr + o.Class.Head()
	for n > 0 {
		count := min(n, windowSize/8)
		d.elements(c.element, addr, count*width)
		addr, n = addr+count*width, n-count
		if n > 0 && d.stop() {
			return
		}
	}
}

// elements writes n bytes of elements, at most windowSize.
func (d *dumping) elements(kind hprof.Type, addr, n uint64) {
	blank := d.opt.Blank && kind != hprof.Object
	var b []byte
	if !blank {
		if b = d.window.bytes(addr, n); b == nil {
			d.res.Lost += n
		}
	}
	if b == nil {
		width := uint64(d.sizeOf(kind))
		for left := n / width * uint64(kind.Size()); left > 0; {
			room := d.out.Room(int(left))
			clear(room)
			left -= uint64(len(room))
		}
		return
	}
	if kind != hprof.Object {
		to := d.out.Room(len(b))
		swap(to, b, kind.Size())
		return
	}
	width := d.heap.RefSize()
	to := d.out.Room(len(b) / width * hprof.IDSize)
	for at := 0; at < len(b); at += width {
		binary.BigEndian.PutUint64(to, d.heap.RefTo(b[at:]))
		to = to[hprof.IDSize:]
	}
}

// swap copies values of width bytes, and reverses the bytes of each.
func swap(to, from []byte, width int) {
	switch width {
	case 1:
		copy(to, from)
	case 2:
		for at := 0; at+2 <= len(from); at += 2 {
			to[at], to[at+1] = from[at+1], from[at]
		}
	case 4:
		for at := 0; at+4 <= len(from); at += 4 {
			binary.BigEndian.PutUint32(to[at:], binary.LittleEndian.Uint32(from[at:]))
		}
	case 8:
		for at := 0; at+8 <= len(from); at += 8 {
			binary.BigEndian.PutUint64(to[at:], binary.LittleEndian.Uint64(from[at:]))
		}
	}
}
