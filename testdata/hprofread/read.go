// Package hprofread reads heap dumps in the HPROF format for tests. It shares no code with output/hprof. It keeps
// everything in memory, and panics where a file is not as services/heapDumper.cpp says.
package hprofread

import (
	"encoding/binary"
	"fmt"
)

// Dump is what a file holds.
type Dump struct {
	Names   map[uint64]string
	Classes map[uint64]*Class
	Objects map[uint64]*Object
	Roots   []Root
	Threads map[uint32]uint64   // the object of each thread
	Traces  map[uint32][]string // by the number of a thread: class.method of each frame
	frames  map[uint64]string
	serials map[uint32]uint64
}

// Class is a class.
type Class struct {
	Name          string
	Super, Loader uint64
	Size          uint32
	Statics       map[string]uint64 // bits
	Fields        []Field
	Count         int
}

// Field is a field of an instance.
type Field struct {
	Name string
	Type byte
}

// Object is an object. Data are its fields or its elements.
type Object struct {
	Class uint64 // 0 for an array of values
	Type  byte   // of the values
	Len   int
	Data  []byte
}

// Root is a root, by its tag.
type Root struct {
	Tag    byte
	Object uint64
	Thread uint32
}

type reader struct{ b []byte }

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		panic(fmt.Sprintf("%d bytes wanted, %d left", n, len(r.b)))
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) u1() byte    { return r.take(1)[0] }
func (r *reader) u2() uint16  { return binary.BigEndian.Uint16(r.take(2)) }
func (r *reader) u4() uint32  { return binary.BigEndian.Uint32(r.take(4)) }
func (r *reader) id() uint64  { return binary.BigEndian.Uint64(r.take(8)) }
func (r *reader) ids(n int)   { r.take(8 * n) }
func (r *reader) empty() bool { return len(r.b) == 0 }
func (r *reader) bits(t byte) (v uint64) {
	for _, b := range r.take(Size(t)) {
		v = v<<8 | uint64(b)
	}
	return v
}

// Size is how many bytes a value of a type has.
func Size(t byte) int {
	return map[byte]int{2: 8, 4: 1, 5: 2, 6: 4, 7: 8, 8: 1, 9: 2, 10: 4, 11: 8}[t]
}

// Parse reads a file.
func Parse(b []byte) *Dump {
	d := &Dump{Names: map[uint64]string{}, Classes: map[uint64]*Class{}, Objects: map[uint64]*Object{},
		Threads: map[uint32]uint64{}, Traces: map[uint32][]string{}, frames: map[uint64]string{},
		serials: map[uint32]uint64{}}
	r := &reader{b}
	if string(r.take(19)) != "JAVA PROFILE 1.0.2\x00" || r.u4() != 8 {
		panic("no heap dump")
	}
	r.id()
	ended := false
	for !r.empty() {
		tag := r.u1()
		r.u4()
		body := &reader{r.take(int(r.u4()))}
		if ended = tag == 0x2c; !ended {
			d.record(tag, body)
		}
	}
	if !ended {
		panic("it has no end")
	}
	for _, o := range d.Objects {
		if c := d.Classes[o.Class]; c != nil {
			c.Count++
		}
	}
	return d
}

func (d *Dump) record(tag byte, r *reader) {
	switch tag {
	case 0x01:
		id := r.id()
		d.Names[id] = string(r.b)
	case 0x02:
		serial, id := r.u4(), r.id()
		r.u4()
		d.serials[serial] = id
		d.Classes[id] = &Class{Name: d.Names[r.id()], Statics: map[string]uint64{}}
	case 0x04:
		id, method := r.id(), d.Names[r.id()]
		r.ids(2)
		class := d.Classes[d.serials[r.u4()]]
		if class == nil {
			class = &Class{}
		}
		d.frames[id] = class.Name + "." + method
	case 0x05:
		r.u4()
		thread := r.u4()
		for n := r.u4(); n > 0; n-- {
			d.Traces[thread] = append(d.Traces[thread], d.frames[r.id()])
		}
	case 0x1c:
		for !r.empty() {
			d.part(r)
		}
	default:
		panic(fmt.Sprintf("record %#x", tag))
	}
}

func (d *Dump) part(r *reader) {
	tag := r.u1()
	id := r.id()
	switch tag {
	case 0xff, 0x05:
		d.Roots = append(d.Roots, Root{tag, id, 0})
	case 0x01:
		r.id()
		d.Roots = append(d.Roots, Root{tag, id, 0})
	case 0x02, 0x03, 0x08:
		thread := r.u4()
		r.u4()
		d.Roots = append(d.Roots, Root{tag, id, thread})
		if tag == 0x08 {
			d.Threads[thread] = id
		}
	case 0x20:
		d.class(r, d.Classes[id])
	case 0x21:
		r.u4()
		o := &Object{Class: r.id()}
		o.Data = r.take(int(r.u4()))
		d.Objects[id] = o
	case 0x22:
		r.u4()
		o := &Object{Len: int(r.u4())}
		o.Class, o.Type = r.id(), 2
		o.Data = r.take(8 * o.Len)
		d.Objects[id] = o
	case 0x23:
		r.u4()
		o := &Object{Len: int(r.u4())}
		o.Type = r.u1()
		o.Data = r.take(Size(o.Type) * o.Len)
		d.Objects[id] = o
	default:
		panic(fmt.Sprintf("part %#x", tag))
	}
}

func (d *Dump) class(r *reader, c *Class) {
	r.u4()
	c.Super, c.Loader = r.id(), r.id()
	r.ids(4)
	c.Size = r.u4()
	if r.u2() != 0 {
		panic("constants")
	}
	for n := r.u2(); n > 0; n-- {
		name := d.Names[r.id()]
		c.Statics[name] = r.bits(r.u1())
	}
	for n := r.u2(); n > 0; n-- {
		name := d.Names[r.id()]
		c.Fields = append(c.Fields, Field{name, r.u1()})
	}
}

// ByName finds a class.
func (d *Dump) ByName(name string) (found *Class) {
	for _, c := range d.Classes {
		if c.Name == name {
			found = c
		}
	}
	return found
}

// Get is the value of a field of an object: its bits.
func (d *Dump) Get(id uint64, field string) uint64 {
	o := d.Objects[id]
	r := &reader{o.Data}
	for class := o.Class; class != 0; class = d.Classes[class].Super {
		for _, f := range d.Classes[class].Fields {
			if v := r.bits(f.Type); f.Name == field {
				return v
			}
		}
	}
	panic("no field " + field)
}

// Text is a java.lang.String.
func (d *Dump) Text(id uint64) string {
	value := d.Objects[d.Get(id, "value")]
	var text []rune
	wide := value.Type == 5
	if !wide {
		wide = d.Get(id, "coder") == 1
	}
	for at := 0; at < len(value.Data); {
		switch {
		case value.Type == 5:
			text = append(text, rune(binary.BigEndian.Uint16(value.Data[at:])))
		case wide: // the bytes are those of the machine
			text = append(text, rune(binary.LittleEndian.Uint16(value.Data[at:])))
		default:
			text = append(text, rune(value.Data[at]))
			at--
		}
		at += 2
	}
	return string(text)
}

// Refs are the references of an object, its own fields first.
func (d *Dump) Refs(o *Object) (ids []uint64) {
	data := o.Data
	if o.Type == 2 {
		for ; len(data) >= 8; data = data[8:] {
			ids = append(ids, binary.BigEndian.Uint64(data))
		}
		return ids
	}
	for c := d.Classes[o.Class]; c != nil; c = d.Classes[c.Super] {
		for _, f := range c.Fields {
			if f.Type == 2 {
				ids = append(ids, binary.BigEndian.Uint64(data))
			}
			data = data[Size(f.Type):]
		}
	}
	return ids
}
