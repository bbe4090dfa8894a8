package heapdump

import (
	"encoding/binary"
	"slices"
	"strings"

	"goprof/output/hprof"
	"goprof/profile"
	"goprof/vmstructs"
)

const (
	// maxChunk bounds the bytes of a virtual thread's frames in the heap that are read.
	maxChunk = 1 << 20
	// maxRoots bounds the roots that are kept until they are written. maxHandles bounds the handles of native code that
	// are read.
	maxRoots   = 1 << 22
	maxHandles = 1 << 22
	// cancelEach is the number of roots between two checks whether the dump is cancelled.
	cancelEach = 1 << 12
)

// root is a reference that keeps an object alive. Roots are found first and written later, because they follow the
// stacks in the file.
type root struct {
	object, handle uint64 // handle: the address of a global handle of native code
	thread         uint32
	kind           rootKind
}

type rootKind uint8

const (
	threadRoot rootKind = iota
	stackRoot
	localRoot
	globalRoot
)

// keep adds a root to the list, if an object begins at its address.
func (d *dumping) keep(r root) {
	switch {
	case !d.isObject(r.object):
	case len(d.roots) == maxRoots:
		d.fail(vmstructs.ErrTooLarge)
	default:
		d.roots = append(d.roots, r)
	}
}

// handle adds the object of a handle of native code to the roots. It returns false once there are too many.
func (d *dumping) handle(r root) bool {
	if d.handles++; d.handles > maxHandles {
		d.fail(vmstructs.ErrTooLarge)
	} else if d.keep(r); d.handles%cancelEach == 0 {
		d.cancelled()
	}
	return d.err == nil
}

func (d *dumping) writeRoots() {
	for i, r := range d.roots {
		if i%cancelEach == 0 && d.cancelled() {
			return
		}
		switch r.kind {
		case threadRoot:
			d.out.Thread(r.object, r.thread, hprof.NoTrace+r.thread)
		case stackRoot:
			d.out.OnStack(r.object, r.thread)
		case localRoot:
			d.out.JNILocal(r.object, r.thread)
		case globalRoot:
			d.out.JNIGlobal(r.object, r.handle)
		}
	}
	d.roots = nil
}

// thread writes a thread's stack. It adds the objects that the thread and its stack refer to, to the roots.
func (d *dumping) thread(t *Thread) {
	if d.cancelled() {
		return
	}
	object, err := d.heap.ThreadObject(t.Java)
	if err != nil || !d.isObject(object) {
		return
	}
	d.res.Threads++
	serial := uint32(d.res.Threads)
	d.trace(hprof.NoTrace+serial, serial, t.Stack)
	d.keep(root{object: object, thread: serial, kind: threadRoot})
	if !t.toBase() {
		d.res.CutStacks++
	}
	for _, addr := range d.references(t.Snap.Stack, t.Snap.Under, bytesOf(t.Snap.Regs[:])) {
		d.keep(root{object: addr, thread: serial, kind: stackRoot})
	}
	if !d.heap.LocalHandles(t.Java, func(object, _ uint64) bool {
		return d.handle(root{object: d.heap.Wide(object), thread: serial, kind: localRoot})
	}) {
		d.res.NoLocals++
	}
}

// trace writes the Java frames of a stack.
func (d *dumping) trace(trace, thread uint32, stack *profile.Stack) {
	var frames []uint64
	if stack != nil {
		for i := range stack.Frames {
			if f := &stack.Frames[i]; f.Func != nil && f.Kind.Java() {
				frames = append(frames, d.frame(f))
			}
		}
	}
	d.out.Trace(trace, thread, frames)
}

// frame writes a frame, and returns its number.
func (d *dumping) frame(f *profile.Frame) uint64 {
	class, method := "", f.Func.Name
	if dot := strings.LastIndexByte(method, '.'); dot > 0 {
		class, method = method[:dot], method[dot+1:]
	}
	file, line := f.Func.File, f.Line
	if d.opt.Names != nil {
		file, method = d.opt.Names.SourceOf(class, file), d.opt.Names.MethodOf(class, method)
	}
	if f.Kind == profile.NativeMethod {
		line = -3
	} else if line <= 0 {
		line = -1
	}
	d.frames++
	d.out.Frame(hprof.Frame{ID: d.frames, Method: d.name(method), Descriptor: d.name(""), File: d.name(file),
		Class: d.serials[class], Line: line})
	return d.frames
}

// references returns the values in memory that may be addresses of objects, each once. It takes whole words as
// addresses, and half words as compressed references.
func (d *dumping) references(pieces ...[]byte) (found []uint64) {
	for _, b := range pieces {
		for at := 0; at+8 <= len(b); at += 8 {
			now, moved := d.heap.OnStack(binary.LittleEndian.Uint64(b[at:]))
			found = append(found, now, moved)
			if d.heap.RefSize() == 4 {
				found = append(found, d.heap.Ref(b[at:]), d.heap.Ref(b[at+4:]))
			}
		}
		found = slices.DeleteFunc(found, func(addr uint64) bool { return !d.inHeap(addr) })
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// bytesOf returns words as bytes in memory order.
func bytesOf(words []uint64) (b []byte) {
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// inHeap reports whether an address may lie in the heap.
func (d *dumping) inHeap(addr uint64) bool {
	return addr >= d.areas[0].Start && addr < d.areas[len(d.areas)-1].Top
}

// chunk writes the references in the frames of an unmounted virtual thread.
func (d *dumping) chunk(o *vmstructs.Object) {
	head := o.Class.Head()
	if o.Bytes <= head {
		return
	}
	b := make([]byte, min(o.Bytes-head, maxChunk))
	if d.heap.Bytes(o.Addr+head, b) != nil {
		d.res.Lost += uint64(len(b))
		return
	}
	for _, addr := range d.references(b) {
		if d.isObject(addr) {
			d.out.UnknownRoot(addr)
		}
	}
}
