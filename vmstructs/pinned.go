package vmstructs

import (
	"strings"

	"goprof/process"
)

// Mounted is a virtual thread that a carrier runs.
type Mounted struct {
	Carrier int // NSTID of the JavaThread
	ID      uint64
	Name    string
	State   string // of VirtualThread: "running", "parking", "pinned", "timed-pinned"
}

// IsPinned reports whether the thread has parked without giving up its carrier.
func (m *Mounted) IsPinned() bool { return strings.HasSuffix(m.State, "pinned") }

// HasVirtual reports whether this JVM may have virtual threads, and exports what is needed to read them.
func (h *Health) HasVirtual() bool { return h.virtual != nil }

// Mounted lists the virtual threads that these threads run now, except those that a collector is moving or that change
// during the reading.
func (h *Health) Mounted(threads []Thread) (list []Mounted) {
	c := h.virtual
	if c == nil || c.prepare() != nil {
		return nil
	}
	for from := 0; from < len(threads); from += threadBatch {
		batch := threads[from:min(from+threadBatch, len(threads))]
		for i, obj := range h.mountedObjects(batch) {
			if obj == 0 {
				continue
			}
			if m, ok := h.mountedOn(&batch[i], obj); ok {
				list = append(list, m)
			}
		}
	}
	return list
}

// mountedObjects returns the object of the virtual thread that each thread runs, 0 if it runs none. It makes two reads
// for all threads together.
func (h *Health) mountedObjects(threads []Thread) (objs [threadBatch]uint64) {
	if !h.vm.l.thread.objHandle {
		return objs
	}
	var words [2 * threadBatch][8]byte
	read := func(addr func(i int) (vthread, own uint64)) {
		h.ranges = h.ranges[:0]
		for i := range threads {
			vthread, own := addr(i)
			h.ranges = append(h.ranges, process.Range{Addr: vthread, Buf: words[2*i][:]},
				process.Range{Addr: own, Buf: words[2*i+1][:]})
		}
		h.vm.t.ReadMany(h.ranges)
		for i := range h.ranges {
			if !h.ranges[i].OK {
				clear(words[i][:])
			}
		}
	}
	read(func(i int) (uint64, uint64) {
		return threads[i].Addr + uint64(h.vm.l.cont.vthread), threads[i].Addr + uint64(h.vm.l.thread.threadObj)
	})
	read(func(i int) (uint64, uint64) { return word(words[2*i][:]), word(words[2*i+1][:]) })
	for i := range threads {
		if mounted, own := word(words[2*i][:]), word(words[2*i+1][:]); mounted != 0 && mounted != own {
			objs[i] = mounted
		}
	}
	return objs
}

// mountedOn reads the virtual thread at a reference. Afterwards the carrier must still have that reference.
func (h *Health) mountedOn(carrier *Thread, reference uint64) (m Mounted, ok bool) {
	c := h.virtual
	if c.vm.holdColours(&c.colours) != nil {
		return m, false
	}
	defer c.vm.letGoColours()
	obj, err := c.vm.uncolour(reference)
	if err != nil {
		return m, false
	}
	v, err := c.readVirtual(obj)
	if err != nil {
		return m, false
	}
	if h.states == nil {
		h.states = &search{c: c, klasses: map[string]uint64{classVirtual: c.virtual.klass}}
	}
	state, err := h.states.stateOf(v.state)
	if err != nil {
		return m, false
	}
	name, err := c.readName(v)
	if err != nil {
		return m, false
	}
	if again, err := c.readVirtual(obj); err != nil || again.state != v.state || again.ID != v.ID {
		return m, false
	}
	if c.mounted(carrier.Addr) != obj {
		return m, false
	}
	return Mounted{Carrier: carrier.NSTID, ID: v.ID, Name: name, State: state.name}, true
}
