package vmstructs

import (
	"errors"

	"goprof/process"
)

// Unread has the bytes of an area that were not counted as objects, by reason.
type Unread struct {
	Buffers uint64 // threads' free memory for new objects
	Free    uint64 // CMS's free memory for new objects
	Making  uint64 // an object that is not complete yet
	Moving  uint64 // an object that the collector is moving
	Unknown uint64 // its header names no class: a dead object whose class was unloaded, or damaged memory
	Memory  uint64 // the memory could not be read
}

// Add adds the bytes of another part.
func (u *Unread) Add(v Unread) {
	u.Buffers += v.Buffers
	u.Free += v.Free
	u.Making += v.Making
	u.Moving += v.Moving
	u.Unknown += v.Unknown
	u.Memory += v.Memory
}

// Sum is the sum of all bytes that were not counted.
func (u Unread) Sum() uint64 { return u.Buffers + u.Free + u.Making + u.Moving + u.Unknown + u.Memory }

// Object is an object that a walk has found.
type Object struct {
	Addr   uint64
	Class  *ObjectClass
	Bytes  uint64
	Length int64 // of an array; -1 otherwise
}

const (
	// firstWindow is the number of bytes that are read at the beginning and after a jump. Windows grow during the walk.
	firstWindow = 4 << 10
	lastWindow  = 1 << 20
	// An array of provenFrom bytes or more must lead to another object, because a wrong length would hide the objects
	// after it.
	provenFrom = 1 << 10
	// nearSeam bounds the distance from the beginning of an incomplete object to the next seam. The memory in between is
	// old, and goprof looks for no object there.
	nearSeam = 64 << 10
	slack    = findHead // bytes that are read after an extent: the header of the last object that begins in it
)

// extent is the state of a walk through a part of an area.
type extent struct {
	h        *Heap
	area     *HeapArea
	to       uint64
	pos      uint64
	synced   bool // an object begins at pos
	earlier  bool // the memory at pos belongs to an object that began before the extent
	why      *uint64
	window   int
	seams    []seam // that are left
	visit    func(*Object)
	stop     func() bool
	unread   Unread
	read     uint64
	object   Object
	overlong bool   // the last object would end after the limit
	doubtful bool   // the last object's size does not lead to another object
	behind   uint64 // the first object after the extent, 0 if none was found
}

// extentEnd is where a walk has ended. A walk that continues there knows the beginning of the next object.
type extentEnd struct {
	to, pos         uint64
	synced, earlier bool
}

// Walk visits the objects of an area that begin between from and to. If from is neither the beginning of the area nor
// the end of the last walk, Walk searches for the first object. It calls stop from time to time, and ends early if stop
// returns true. It returns the bytes that it has copied, those that it could not count, and whether it has reached the
// end.
func (h *Heap) Walk(area *HeapArea, from, to uint64, stop func() bool, visit func(*Object)) (read uint64, unread Unread,
	whole bool) {
	if h.window == nil {
		h.window = make([]byte, lastWindow)
	}
	to = min(to, area.Top)
	h.klasses.inPlace, h.pitch, h.chunks = h.inPlace(area), area.pitch, area.chunks
	x := &extent{h: h, area: area, pos: from, to: to, synced: from == area.Start, earlier: from != area.Start,
		window: firstWindow, seams: area.seams, visit: visit, stop: stop}
	if last := area.last; last.to == from && !x.synced && last.to != 0 {
		x.pos, x.synced, x.earlier, x.why = last.pos, last.synced, last.earlier, &x.unread.Unknown
	}
	area.last = extentEnd{}
	for x.pos < x.to {
		if stop() {
			return x.read, x.unread, false
		}
		x.step()
	}
	area.last = extentEnd{to, x.pos, x.synced, x.earlier}
	return x.read, x.unread, true
}

// inPlace reports whether an object is still at its address although a collection has marked it. A full collection of
// Serial and Parallel marks first, and moves objects last (gc/serial/serialFullGC.cpp,
// gc/parallel/psParallelCompact.cpp). Their other collections move no old object.
func (h *Heap) inPlace(a *HeapArea) bool {
	return a.Part == OldPart && a.topAt != 0 && !h.klasses.compact
}

// lose counts bytes that could not be read as objects.
func (x *extent) lose(bytes uint64, why *uint64) {
	if why != nil {
		*why += bytes
	}
}

// step reads a window, or skips a seam. Each step moves pos.
func (x *extent) step() {
	for len(x.seams) > 0 && x.seams[0].at < x.pos && x.seams[0].next <= x.pos {
		x.seams = x.seams[1:]
	}
	limit := x.area.Top
	if len(x.seams) > 0 {
		s := x.seams[0]
		if s.at <= x.pos { // an extent may begin inside the seam
			next := min(max(s.next, x.pos), x.area.Top)
			x.unread.Buffers += min(next, x.to) - x.pos
			x.pos, x.synced, x.earlier, x.seams = next, true, false, x.seams[1:]
			return
		}
		limit = min(limit, s.at)
	}
	b, ok := x.load(limit)
	switch {
	case !ok:
		x.pass(limit, &x.unread.Memory)
	case !x.synced:
		x.search(b, limit)
	default:
		x.count(b, limit)
	}
}

// pass skips memory that cannot be read.
func (x *extent) pass(limit uint64, why *uint64) {
	next := min(limit, x.pos+firstWindow)
	x.lose(min(next, x.to)-x.pos, why)
	x.pos, x.synced, x.earlier, x.why = next, false, false, why
	x.window = firstWindow
}

// load copies the memory from pos on, up to the limit or slightly beyond the extent. If a whole window cannot be read,
// it tries the first page only.
func (x *extent) load(limit uint64) ([]byte, bool) {
	n := min(uint64(x.window), limit-x.pos, x.to-x.pos+slack)
	x.window = min(4*x.window, lastWindow)
	b := x.h.window[:n]
	err := x.h.vm.mem.Bytes(x.pos, b)
	if errors.Is(err, process.ErrFault) && n > firstWindow {
		b = b[:min(n, firstWindow-x.pos%firstWindow)]
		err = x.h.vm.mem.Bytes(x.pos, b)
	}
	x.read += uint64(len(b))
	return b, err == nil
}

// search looks for the next object. The memory before it counts as lost, unless it belongs to an object that began
// before the extent.
func (x *extent) search(b []byte, limit uint64) {
	at := x.h.find(x.pos, b, limit, x.stop)
	x.synced = at < len(b)
	next := x.pos + uint64(at)
	if !x.synced && next < limit { // keep the last words: a header may begin there
		next = max(x.pos+x.h.align, (next-klassBytes)&^(x.h.align-1))
	}
	if !x.earlier {
		x.lose(min(next, x.to)-x.pos, x.why)
	}
	x.pos = next
	if x.synced {
		x.earlier = false
		x.window = max(firstWindow, x.window/4)
	}
}

// count visits the objects in b. An object may not cross the limit.
func (x *extent) count(b []byte, limit uint64) {
	base := x.pos
	x.overlong, x.doubtful = false, false
	next, err := x.h.Objects.Walk(base, b, func(addr uint64, class *ObjectClass, size uint64) {
		if x.doubtful || x.behind != 0 {
			return
		}
		if addr >= x.to {
			x.behind = addr
			return
		}
		if size > limit-addr {
			x.overlong, x.pos = true, addr
			return
		}
		if class == &freeMemory {
			x.unread.Free += size
			return
		}
		proven := class.kind == plainObject || x.area.Part == HumongousPart || size < provenFrom
		if !proven && !x.leads(x.h.behind(addr, size), base, b, limit) {
			x.doubtful, x.pos = true, addr
			return
		}
		x.object = Object{Addr: addr, Class: class, Bytes: size, Length: -1}
		if class.kind == arrayObject {
			x.object.Length = int64(x.h.lengthIn(b[addr-base:]))
		}
		x.visit(&x.object)
	})
	switch {
	case x.area.Part == HumongousPart: // there is one object, and nothing after it
		if x.overlong {
			err = ErrNoSize
		}
		if err != nil || next == base {
			x.lose(x.to-base, x.reason(err))
		}
		x.pos, x.synced = x.area.Top, true
	case x.overlong && limit < x.area.Top && limit-x.pos <= nearSeam:
		// The last object before a seam is not complete yet. Objects after the seam do not depend on it.
		x.lose(min(limit, x.to)-x.pos, &x.unread.Making)
		x.pos = limit
	case x.overlong:
		x.err(x.pos, ErrNoSize)
	case x.doubtful:
		x.err(x.pos, ErrNoSize)
	case x.behind != 0:
		x.pos = x.behind
	case err != nil:
		x.err(next, err)
	case next == base || limit-next < uint64(x.h.Objects.head) && next < limit:
		// There is no room for an object.
		x.pos = next
		x.pass(limit, &x.unread.Unknown)
	default:
		if next > base+uint64(len(b)) {
			x.window = firstWindow
		}
		x.pos = next
	}
}

// leads reports whether another object begins at an address, or the area ends there.
func (x *extent) leads(at, base uint64, b []byte, limit uint64) bool {
	if at >= limit {
		return at == limit
	}
	head, ok := x.h.headAt(at, base, b, limit)
	if !ok || !x.h.markMakesSense(word(head)) {
		return false
	}
	_, _, err := x.h.object(head)
	return err == nil
}

// err skips an object that cannot be read.
func (x *extent) err(at uint64, err error) {
	why := x.reason(err)
	next := at + x.h.align
	x.lose(min(next, x.to)-min(at, x.to), why)
	x.pos, x.synced, x.earlier, x.why = next, false, false, why
}

// reason returns the counter for bytes that were lost because of an error.
func (x *extent) reason(err error) *uint64 {
	switch {
	case errors.Is(err, ErrNoObject):
		return &x.unread.Making
	case errors.Is(err, ErrMoved):
		return &x.unread.Moving
	}
	return &x.unread.Unknown
}

func (o *Objects) lengthIn(b []byte) uint32 {
	if o.lengthAt+4 > len(b) {
		return 0
	}
	return offset(o.lengthAt).u32(b)
}
