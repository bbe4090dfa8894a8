package heapdump

import (
	"encoding/binary"
	"strings"

	"goprof/output/hprof"
	"goprof/vmstructs"
)

type class struct {
	*vmstructs.DumpClass
	element hprof.Type // the type of an array's elements; 0: no array
	chunk   bool       // its objects hold frames of virtual threads, after the fields
	planned bool
	plan    []step // the fields of an instance, in the file's order
	size    uint32 // bytes of an instance in the file
	taken   uint32 // bytes of these fields in the heap
}

// step writes one field: the field's offset in an object, and its type.
type step struct {
	at   uint32
	kind hprof.Type
}

const (
	maxDepth = 1 << 12
	// maxPlans bounds the steps of all classes together. maxLooked bounds the classes and fields that are read to make the
	// steps.
	maxPlans  = 1 << 22
	maxLooked = 1 << 24
	// maxInstance bounds the bytes that are read of an object that is not an array.
	maxInstance = 1<<20 + 8
	// maxFields bounds the bytes of an object's fields in the file. One call writes all of them.
	maxFields = 1 << 20

	chunkName  = "jdk/internal/vm/StackChunk"
	objectName = "java/lang/Object"

	// resolvedReferences is the name in HotSpot's own dumps for the array of objects that a class's constants refer to.
	resolvedReferences = "<resolved_references>"
)

// readClasses reads all classes, and writes their names.
func (d *dumping) readClasses() error {
	var err error
	if d.reader, err = d.heap.NewDumpClasses(); err != nil {
		return err
	}
	object := uint64(0)
	err = d.reader.Each(func(read *vmstructs.DumpClass) error {
		c := &class{DumpClass: read, chunk: read.Name == chunkName}
		if read.Name[0] == '[' && len(read.Name) > 1 {
			c.element, _ = hprof.TypeOf(read.Name[1])
		}
		if read.Name == objectName {
			object = read.Klass
		}
		d.classes[read.Klass], d.mirrors[read.Mirror] = c, true
		d.order = append(d.order, c)
		serial := uint32(len(d.order))
		d.serials[vmstructs.JavaName(read.Name)] = serial
		d.out.LoadClass(serial, read.Mirror, d.name(d.className(read.Name)))
		d.cancelled()
		return d.err
	})
	if err != nil {
		return err
	}
	d.res.Classes, d.res.UnreadClasses = int64(len(d.order)), d.reader.Unread
	d.name(resolvedReferences)
	for _, c := range d.order {
		if c.element != 0 {
			c.Super = object
		}
		for _, f := range c.Fields {
			d.fieldName(c, f.Name)
		}
	}
	return d.out.Err()
}

// writeClasses writes all classes. Those of the boot loader are roots.
func (d *dumping) writeClasses() error {
	plans := 0
	for _, c := range d.order {
		if plans += len(d.planOf(c)); plans > maxPlans || d.looked > maxLooked {
			return vmstructs.ErrTooLarge
		} else if d.cancelled() {
			return d.err
		}
		d.writeClass(c)
		if c.Loader == 0 {
			d.out.StickyClass(c.Mirror)
		}
	}
	return d.out.Err()
}

// className returns the name of a class in the JVM's spelling, with hidden parts replaced.
func (d *dumping) className(name string) string {
	if d.opt.Names == nil {
		return name
	}
	element := strings.TrimLeft(name, "[")
	brackets := name[:len(name)-len(element)]
	if brackets == "" {
		return slashes(d.opt.Names.Class(vmstructs.JavaName(name)))
	}
	if !strings.HasPrefix(element, "L") || !strings.HasSuffix(element, ";") {
		return name // of a primitive type
	}
	return brackets + "L" + slashes(d.opt.Names.Class(vmstructs.JavaName(element[1:len(element)-1]))) + ";"
}

func slashes(name string) string { return strings.ReplaceAll(name, ".", "/") }

// fieldName returns the number of a field's name, with hidden parts replaced.
func (d *dumping) fieldName(c *class, field string) uint64 {
	if d.opt.Names != nil {
		field = d.opt.Names.MethodOf(vmstructs.JavaName(c.Name), field)
	}
	return d.name(field)
}

// planOf returns the steps that write an instance of a class: the fields of the class, then those of each superclass.
func (d *dumping) planOf(c *class) []step {
	if c.planned {
		return c.plan
	}
	c.planned = true
	for k, depth := c, 0; k != nil && depth < maxDepth; k, depth = d.classes[k.Super], depth+1 {
		if d.looked += 1 + len(k.Fields); d.looked > maxLooked {
			break
		}
		for _, f := range k.Fields {
			if kind, ok := hprof.TypeOf(f.Type); ok && !f.Static && c.size < maxFields-hprof.IDSize {
				c.plan = append(c.plan, step{f.At, kind})
				c.size, c.taken = c.size+uint32(kind.Size()), c.taken+uint32(d.sizeOf(kind))
			}
		}
		if k.Super == 0 {
			break
		}
	}
	return c.plan
}

// writeClass writes a class: the values of its static fields, and the types of its instances' fields.
func (d *dumping) writeClass(c *class) {
	out := hprof.Class{ID: c.Mirror, Loader: c.Loader, InstanceSize: c.size}
	if super := d.classes[c.Super]; super != nil {
		out.Super = super.Mirror
	}
	end := 0
	for _, f := range c.Fields {
		if f.Static {
			end = max(end, int(f.At)+8)
		}
	}
	mirror := d.mirrorBytes(c.Mirror, end)
	for _, f := range c.Fields {
		kind, ok := hprof.TypeOf(f.Type)
		switch {
		case !ok:
		case f.Static:
			s := hprof.Static{Name: d.fieldName(c, f.Name), Type: kind}
			if at := mirror[min(int(f.At), len(mirror)):]; len(at) >= d.sizeOf(kind) {
				s.Value = d.valueOf(kind, at)
			}
			out.Statics = append(out.Statics, s)
		default:
			out.Fields = append(out.Fields, hprof.Field{Name: d.fieldName(c, f.Name), Type: kind})
		}
	}
	if c.Resolved != 0 {
		out.Statics = append(out.Statics, hprof.Static{Name: d.name(resolvedReferences), Type: hprof.Object,
			Value: c.Resolved})
	}
	d.out.Class(&out)
}

// mirrorBytes reads the first n bytes of a java.lang.Class, which include its static fields. The result is shorter if
// memory is missing.
func (d *dumping) mirrorBytes(addr uint64, n int) []byte {
	if n == 0 || n > maxInstance {
		return nil
	}
	b := d.scratch[:n]
	if d.heap.Bytes(addr, b) == nil {
		return b
	}
	if b = b[:n-4]; d.heap.Bytes(addr, b) == nil {
		return b
	}
	d.res.Lost += uint64(n)
	return nil
}

// sizeOf is the size of a value in the heap.
func (d *dumping) sizeOf(kind hprof.Type) int {
	if kind == hprof.Object {
		return d.heap.RefSize()
	}
	return kind.Size()
}

// valueOf returns the value at the beginning of b.
func (d *dumping) valueOf(kind hprof.Type, b []byte) uint64 {
	if kind == hprof.Object {
		return d.heap.RefTo(b)
	}
	if d.opt.Blank {
		return 0
	}
	switch kind.Size() {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}
