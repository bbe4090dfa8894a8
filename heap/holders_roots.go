package heap

import (
	"time"

	"goprof/process"
	"goprof/profile"
	"goprof/profile/naming"
	"goprof/vmstructs"
)

// The search for holders goes from both ends. First it follows references from the roots for a few steps, whatever the
// size of the heap. The roots are static fields, threads, and handles of native code. Then it searches from the drawn
// objects upwards. A chain ends at an object that was reached from a root.

const (
	// maxReached bounds the objects that are reached from roots. maxElements bounds the elements of one array that are
	// followed. maxLong bounds the longer arrays.
	maxReached  = 1 << 19
	maxElements = 1 << 14
	maxLong     = 1 << 12
	// headBytes is the number of bytes of an object that are read first. One call reads the heads of reachBatch objects.
	headBytes  = 128
	reachBatch = 256
	// maxHandles bounds the handles of native code. maxStack bounds the bytes of one thread's stack, and maxStacks those
	// of all.
	maxHandles = 1 << 18
	maxStack   = 1 << 20
	maxStacks  = 256 << 20
)

// reached is an object that was reached from a root. Number 0 stands for no object.
type reached struct {
	addr, klass uint64
	slot        uint64 // the address of the reference that led here; 0: not in the heap
	up, link    int32  // up is 0 if link is a root
}

// reach has all objects that were reached. Those nearest to a root come first.
type reach struct {
	t     *heldClasses
	all   []reached
	index map[uint64]int32
	long  []vmstructs.Object // arrays with elements that were not followed
	heads []byte
	buf   []byte
}

// reachFromRoots follows references from the roots until it has reached maxReached objects or over returns true.
func reachFromRoots(t *heldClasses, over func() bool) *reach {
	r := &reach{t: t, all: make([]reached, 1), index: map[uint64]int32{}, heads: make([]byte, reachBatch*headBytes),
		buf: make([]byte, maxElements*8)}
	for _, c := range t.order {
		if c.loader == "" {
			r.statics(c, 0)
		}
	}
	r.threads()
	handles, native := 0, t.link(profile.HeapLink{Kind: profile.LinkNative})
	t.heap.GlobalHandles(func(object, _ uint64) bool {
		r.add(t.heap.Wide(object), reached{link: native})
		handles++
		return handles < maxHandles
	})
	for from := 1; from < len(r.all) && len(r.all) < maxReached && !over(); {
		to := min(len(r.all), from+reachBatch)
		r.follow(from, to)
		from = to
	}
	return r
}

// threads adds the threads' objects, and the objects that handles of their native methods refer to.
func (r *reach) threads() {
	threads, err := r.t.heap.Threads()
	if err != nil {
		return
	}
	handles := 0
	for _, thread := range threads {
		if object, err := r.t.heap.ThreadObject(thread); err == nil {
			name := naming.Pool(r.t.heap.ThreadName(thread))
			r.add(object, reached{link: r.t.link(profile.HeapLink{Kind: profile.LinkThread, Thread: name})})
		}
		native := r.t.link(profile.HeapLink{Kind: profile.LinkNative})
		r.t.heap.LocalHandles(thread, func(object, _ uint64) bool {
			r.add(r.t.heap.Wide(object), reached{link: native})
			handles++
			return handles < maxHandles
		})
	}
}

// add adds an object, once.
func (r *reach) add(addr uint64, way reached) {
	if addr == 0 || addr%8 != 0 || r.index[addr] != 0 || len(r.all) >= maxReached {
		return
	}
	way.addr = addr
	r.index[addr] = int32(len(r.all))
	r.all = append(r.all, way)
}

// statics adds the objects to which static fields and constants of a class refer. up is their holder, the loader's
// object. If up is 0, they are roots.
func (r *reach) statics(c *heldClass, up int32) {
	for _, f := range c.statics {
		r.at(c.Mirror+uint64(f.at), up, f.link)
	}
	if c.Resolved != 0 && up == 0 {
		r.add(c.Resolved, reached{link: r.t.link(profile.HeapLink{Kind: profile.LinkConstant, Class: c.name})})
	}
}

// at adds the object to which the reference at slot leads.
func (r *reach) at(slot uint64, up, link int32) {
	var b [8]byte
	if n := r.t.heap.RefSize(); r.t.heap.Bytes(slot, b[:n]) == nil {
		r.add(r.t.heap.RefTo(b[:n]), reached{slot: slot, up: up, link: link})
	}
}

// follow adds the objects to which some reached objects refer.
func (r *reach) follow(from, to int) {
	ranges := make([]process.Range, 0, reachBatch)
	for i := from; i < to; i++ {
		at := (i - from) * headBytes
		ranges = append(ranges, process.Range{Addr: r.all[i].addr, Buf: r.heads[at : at+headBytes]})
	}
	r.t.heap.ReadMany(ranges)
	for i := range ranges {
		b, up := ranges[i].Buf, int32(from+i)
		if !ranges[i].OK {
			if b = b[:16]; r.t.heap.Bytes(r.all[up].addr, b) != nil { // the very last object may be shorter
				continue
			}
		}
		o, ok := r.t.heap.ObjectIn(r.all[up].addr, b)
		c := (*heldClass)(nil)
		if ok {
			c = r.t.byKlass[o.Class.Klass]
		}
		if c == nil {
			continue
		}
		r.all[up].klass = c.Klass
		r.object(up, &o, c, b)
	}
}

// object adds the objects to which one object refers.
func (r *reach) object(up int32, o *vmstructs.Object, c *heldClass, b []byte) {
	if c.loader != "" { // an object holds its class, and a class its loader
		r.add(c.Loader, reached{up: up, link: r.t.link(profile.HeapLink{Kind: profile.LinkClass, Class: c.name})})
	}
	for _, loaded := range r.t.byLoader[o.Addr] {
		r.statics(loaded, up)
	}
	width := uint64(r.t.heap.RefSize())
	if c.isRefArray() {
		n := min(uint64(o.Length), maxElements)
		if uint64(o.Length) > maxElements && len(r.long) < maxLong {
			r.long = append(r.long, *o)
		}
		at := o.Addr + o.Class.Head()
		if b = r.buf[:n*width]; r.t.heap.Bytes(at, b) != nil {
			return
		}
		link := r.t.link(profile.HeapLink{Kind: profile.LinkElement, Class: c.name})
		for i := uint64(0); i < n*width; i += width {
			r.add(r.t.heap.RefTo(b[i:]), reached{slot: at + i, up: up, link: link})
		}
		return
	}
	for _, f := range r.t.refsOf(c) {
		if at := uint64(f.at); at+width <= uint64(len(b)) {
			r.add(r.t.heap.RefTo(b[at:]), reached{slot: o.Addr + at, up: up, link: f.link})
		} else {
			r.at(o.Addr+at, up, f.link)
		}
	}
}

// onStacks calls found for each sought object whose address is on a thread's stack. whole is false if not all stacks
// were read.
func onStacks(t *heldClasses, sought *vmstructs.Sought, until time.Time, found func(object, link int32)) (whole bool) {
	threads, err := t.heap.Threads()
	if err != nil {
		return false
	}
	read := 0
	for _, thread := range threads {
		b := t.heap.StackOf(thread, maxStack)
		if read += len(b); read > maxStacks || time.Now().After(until) {
			return false
		}
		name, link := "", int32(-1)
		sought.OnStack(b, func(object int32) {
			if link < 0 {
				name = naming.Pool(t.heap.ThreadName(thread))
				link = t.link(profile.HeapLink{Kind: profile.LinkStack, Thread: name})
			}
			found(object, link)
		})
	}
	return true
}
