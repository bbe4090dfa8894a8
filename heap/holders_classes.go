package heap

import (
	"cmp"
	"slices"
	"sort"

	"goprof/profile"
	"goprof/profile/naming"
	"goprof/vmstructs"
)

// heldClass is a class with the references that its objects have.
type heldClass struct {
	*vmstructs.DumpClass
	name    string     // in Java's spelling
	loader  string     // the class of its loader, if the loader is the program's and can be unloaded
	refs    []refField // of an object, own and inherited, in the order of their offsets
	planned bool
	statics []refField // static references, in its java.lang.Class
}

type refField struct {
	at   uint32
	link int32
}

const (
	// maxSuperclasses bounds the superclasses of a class. maxPlanned bounds the fields of all classes that are read.
	maxSuperclasses = 1 << 10
	maxPlanned      = 1 << 23
)

type heldClasses struct {
	heap     *vmstructs.Heap
	byKlass  map[uint64]*heldClass
	byMirror map[uint64]*heldClass
	byLoader map[uint64][]*heldClass // the classes of each of the program's loaders
	order    []*heldClass
	links    []profile.HeapLink
	numbers  map[profile.HeapLink]int32
	planned  int
	lost     int // classes that could not be read
}

func readHeldClasses(h *vmstructs.Heap) (*heldClasses, error) {
	t := &heldClasses{heap: h, byKlass: map[uint64]*heldClass{}, byMirror: map[uint64]*heldClass{},
		byLoader: map[uint64][]*heldClass{}, numbers: map[profile.HeapLink]int32{}}
	reader, err := h.NewDumpClasses()
	if err != nil {
		return nil, err
	}
	loaders := map[uint64]string{}
	err = reader.Each(func(read *vmstructs.DumpClass) error {
		c := &heldClass{DumpClass: read, name: naming.Class(vmstructs.JavaName(read.Name))}
		name, known := loaders[read.Loader]
		if !known {
			name = t.loaderOf(read)
			loaders[read.Loader] = name
		}
		if c.loader = name; name != "" {
			t.byLoader[read.Loader] = append(t.byLoader[read.Loader], c)
		}
		kind := profile.LinkStatic
		if c.loader != "" {
			kind = profile.LinkLoaded
		}
		for _, f := range read.Fields {
			if f.Static && isReference(f) {
				link := profile.HeapLink{Kind: kind, Class: c.name, Field: f.Name, Loader: c.loader}
				c.statics = append(c.statics, refField{f.At, t.link(link)})
			}
		}
		t.byKlass[read.Klass], t.byMirror[read.Mirror] = c, c
		t.order = append(t.order, c)
		return nil
	})
	t.lost = reader.Unread
	return t, err
}

func isReference(f vmstructs.DumpField) bool { return f.Type == 'L' || f.Type == '[' }

// loaderOf returns the class name of a class's loader. It is empty for the JVM's own loaders, whose classes are never
// unloaded.
func (t *heldClasses) loaderOf(c *vmstructs.DumpClass) string {
	if c.Loader == 0 {
		return ""
	}
	var head [headBytes]byte
	if t.heap.Bytes(c.Loader, head[:]) != nil {
		return ""
	}
	o, ok := t.heap.ObjectIn(c.Loader, head[:])
	if !ok || vmstructs.BuiltinLoader(o.Class.Name) != "" {
		return ""
	}
	return o.Class.Name
}

func (t *heldClasses) link(l profile.HeapLink) int32 {
	n, ok := t.numbers[l]
	if !ok {
		n = int32(len(t.links))
		t.links, t.numbers[l] = append(t.links, l), n
	}
	return n
}

// refsOf returns the references of a class's objects. A java.lang.ref.Reference keeps its referent alive only if it is
// a SoftReference, or if it belongs to an object that waits for its finalizer. refsOf leaves out all other referents,
// as the oop maps do (oops/instanceRefKlass.hpp).
func (t *heldClasses) refsOf(c *heldClass) []refField {
	if c.planned {
		return c.refs
	}
	c.planned = true
	strong := false
	for k, n := c, 0; k != nil && n < maxSuperclasses && t.planned < maxPlanned; k, n = t.byKlass[k.Super], n+1 {
		t.planned += 1 + len(k.Fields)
		strong = strong || k.name == "java.lang.ref.SoftReference" || k.name == "java.lang.ref.FinalReference"
		for _, f := range k.Fields {
			weak := k.name == "java.lang.ref.Reference" && (f.Name == "discovered" || f.Name == "referent" && !strong)
			if !f.Static && isReference(f) && !weak {
				link := profile.HeapLink{Kind: profile.LinkField, Class: k.name, Field: f.Name}
				c.refs = append(c.refs, refField{f.At, t.link(link)})
			}
		}
		if k.Super == 0 {
			break
		}
	}
	sort.Slice(c.refs, func(i, j int) bool { return c.refs[i].at < c.refs[j].at })
	return c.refs
}

// isRefArray reports whether the class is an array of references.
func (c *heldClass) isRefArray() bool {
	return len(c.Name) > 1 && c.Name[0] == '[' && (c.Name[1] == 'L' || c.Name[1] == '[')
}

// holderOf returns the holder and the link of a reference at the address slot in an object. The holder is the object.
// For a static field of a class that can be unloaded, the holder is the class's loader. ok is false if there is no
// reference at slot.
func (t *heldClasses) holderOf(o *vmstructs.Object, slot uint64) (addr, klass uint64, link int32, ok bool) {
	at := uint32(slot - o.Addr)
	if m := t.byMirror[o.Addr]; m != nil {
		if i := slices.IndexFunc(m.statics, func(f refField) bool { return f.at == at }); i >= 0 {
			if m.loader == "" {
				return 0, 0, m.statics[i].link, true
			}
			return m.Loader, 0, m.statics[i].link, true
		}
	}
	c := t.byKlass[o.Class.Klass]
	if c == nil || o.Class.Filler { // a filler still has the bytes of former objects
		return 0, 0, 0, false
	}
	if c.isRefArray() {
		at, width := slot-o.Addr-o.Class.Head(), uint64(t.heap.RefSize()) // huge if slot is before the elements
		return o.Addr, c.Klass, t.link(profile.HeapLink{Kind: profile.LinkElement, Class: c.name}),
			o.Length >= 0 && at/width < uint64(o.Length)
	}
	refs := t.refsOf(c)
	i, found := slices.BinarySearchFunc(refs, at, func(f refField, at uint32) int { return cmp.Compare(f.at, at) })
	if !found {
		return 0, 0, 0, false
	}
	return o.Addr, c.Klass, refs[i].link, true
}
