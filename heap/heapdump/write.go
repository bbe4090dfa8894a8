package heapdump

import (
	"errors"
	"fmt"
	"io"
	"time"

	"goprof/output/hprof"
	"goprof/process"
	"goprof/profile"
	"goprof/vmstructs"
)

// Names replaces the names that must be hidden. It gets and returns class names in Java's spelling.
type Names interface {
	Class(name string) string
	MethodOf(class, member string) string
	SourceOf(class, file string) string
}

// Thread is a Java thread that stands still.
type Thread struct {
	Java  vmstructs.Thread
	Stack *profile.Stack
	Snap  *process.Snapshot
}

// toBase reports whether the copy of the thread's stack includes the oldest frame.
func (t *Thread) toBase() bool {
	end := t.Snap.SP + uint64(len(t.Snap.Stack))
	if len(t.Snap.Under) > 0 {
		end = t.Snap.UnderSP + uint64(len(t.Snap.Under))
	}
	return end == t.Java.StackBase
}

type Options struct {
	At time.Time // the moment of the heap's state
	// Threads calls a function for each thread. A Thread is valid until that function returns.
	Threads func(func(*Thread))
	// Blank writes zero in place of numbers and texts. Only references remain.
	Blank bool
	// Names is nil if no name must be hidden.
	Names Names
	// Size is the largest possible size of the heap, and bounds the file. With 0, the size in the JVM's structures is
	// used.
	Size uint64
	// Cancel ends the dump early, with ErrCancelled. May be nil.
	Cancel <-chan struct{}
	// Objects is called when everything but the objects is written. May be nil.
	Objects func()
}

// Result counts what a heap dump holds, and what it lacks.
type Result struct {
	Classes, Objects int64
	Bytes            uint64 // of the objects in the heap
	Threads          int64
	Written          int64

	Unread  vmstructs.Unread // memory that could not be read as objects
	Unknown uint64           // bytes of objects whose class is not known
	Lost    uint64           // bytes that could not be read; the file has zeros for them
	Cut     int64            // array elements that do not fit into a record
	// UnreadClasses is the number of classes that could not be read. Their objects count as Unknown.
	UnreadClasses int
	// NoGlobals: some global handles of native code are not known. NoLocals counts the threads of which some local handles
	// are not known.
	NoGlobals bool
	NoLocals  int
	// CutStacks counts threads whose oldest frames could not be searched for roots.
	CutStacks int
}

var (
	// ErrCancelled: Options.Cancel was closed.
	ErrCancelled  = errors.New("heapdump: cancelled")
	ErrUnreadable = errors.New("heapdump: too much of the heap cannot be read")
	// ErrTooMuch: the file would be larger than the dump of a heap of that size can be.
	ErrTooMuch = errors.New("heapdump: the heap is not as large as it says")
)

const (
	// maxSteps bounds the steps of the walk through the heap. A step reads a mebibyte, or skips an unreadable range.
	maxSteps = 1 << 22
	// maxLost bounds the zeros that are written for unreadable memory.
	maxLost = 1 << 30
	// fileGrows and fileMore bound the file by the size of the heap. The file is larger than the heap, because compressed
	// references become up to twice as long and headers are added. maxHeap is larger than any heap.
	fileGrows, fileMore, maxHeap = 4, 1 << 30, 1 << 48
)

type dumping struct {
	heap    *vmstructs.Heap
	out     *hprof.Writer
	opt     Options
	reader  *vmstructs.DumpClasses
	res     Result
	areas   []*vmstructs.HeapArea
	classes map[uint64]*class // by Klass
	order   []*class
	mirrors map[uint64]bool
	names   map[string]uint64 // numbers of names
	serials map[string]uint32 // of classes, by name in Java's spelling
	last    *class            // of the last object
	window  window
	scratch []byte
	frames  uint64 // the numbers of frames that are in use
	roots   []root
	handles int
	looked  int // fields that planOf has read
	steps   int
	err     error
}

// Write writes a heap dump of a JVM that stands still. With the error ErrCancelled, the result is not nil and counts
// what was written.
func Write(w io.Writer, vm *vmstructs.VM, opt Options) (*Result, error) {
	heap, err := vm.NewHeap()
	if err != nil {
		return nil, err
	}
	d := &dumping{heap: heap, opt: opt, classes: map[uint64]*class{}, mirrors: map[uint64]bool{},
		names: map[string]uint64{}, serials: map[string]uint32{}, scratch: make([]byte, scratchSize)}
	d.window.heap = heap
	if d.areas, err = heap.DumpAreas(); err != nil {
		return nil, err
	}
	if opt.Size == 0 {
		for _, a := range d.areas {
			opt.Size += min(a.Top-a.Start, maxHeap)
		}
	}
	d.out = hprof.NewWriter(&bounded{w, fileGrows*int64(min(opt.Size, maxHeap)) + fileMore}, opt.At)
	if err := d.readClasses(); err != nil {
		return nil, err
	}
	if opt.Threads != nil {
		opt.Threads(d.thread)
	}
	if !heap.GlobalHandles(func(object, handle uint64) bool {
		return d.handle(root{object: heap.Wide(object), handle: handle, kind: globalRoot})
	}) {
		d.res.NoGlobals = true
	}
	if d.err != nil {
		return nil, d.err
	}
	if err := d.writeClasses(); err != nil {
		return nil, err
	}
	if d.writeRoots(); opt.Objects != nil {
		opt.Objects()
	}
	if err := d.objects(); err != nil {
		return &d.res, err
	}
	if err := d.out.Close(); err != nil {
		return nil, err
	}
	d.res.Written = d.out.Written()
	return &d.res, nil
}

// WriteError is an error of the writer to which the dump was written.
type WriteError struct{ Err error }

func (e *WriteError) Error() string { return e.Err.Error() }
func (e *WriteError) Unwrap() error { return e.Err }

// bounded is a writer that accepts a bounded number of bytes.
type bounded struct {
	io.Writer
	left int64
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, ErrTooMuch
	}
	n, err := b.Writer.Write(p)
	if err != nil {
		err = &WriteError{err}
	}
	return n, err
}

// cancelled reports whether the dump must end, because of Options.Cancel or an error.
func (d *dumping) cancelled() bool {
	select {
	case <-d.opt.Cancel:
		d.fail(ErrCancelled)
	default:
	}
	d.fail(d.out.Err())
	return d.err != nil
}

// stop counts a step of the walk through the heap, and reports whether the dump must end.
func (d *dumping) stop() bool {
	if d.steps++; d.steps > maxSteps || d.res.Lost > maxLost {
		d.fail(ErrUnreadable)
	}
	return d.cancelled()
}

// fail keeps the first error.
func (d *dumping) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

func (d *dumping) objects() error {
	for _, a := range d.areas {
		d.window.end = a.Top
		_, unread, _ := d.heap.Walk(a, a.Start, a.Top, d.stop, d.object)
		d.res.Unread.Add(unread)
		if d.err != nil {
			return d.err
		}
	}
	return nil
}

// name returns the number of a name. The first call for a name writes it.
func (d *dumping) name(text string) uint64 {
	id, ok := d.names[text]
	if !ok {
		id = uint64(len(d.names) + 1)
		d.names[text] = id
		d.out.String(id, text)
	}
	return id
}

// isObject reports whether an object of a loaded class begins at an address.
func (d *dumping) isObject(addr uint64) bool {
	klass := d.heap.KlassOf(d.areas, addr)
	return klass != 0 && d.classes[klass] != nil
}

// Missing returns a sentence for each thing that the dump lacks.
func (r *Result) Missing() (all []string) {
	tell := func(n uint64, what string) {
		if n > 0 {
			all = append(all, fmt.Sprintf(what, n))
		}
	}
	tell(r.Unread.Moving, "%d bytes of objects that the collector was moving")
	tell(r.Unread.Making, "%d bytes of objects that a thread was making")
	tell(r.Unread.Unknown, "%d bytes without a known class (dead objects whose class was unloaded, or damaged memory)")
	tell(r.Unread.Memory, "%d bytes of memory that could not be read")
	tell(r.Unknown, "%d bytes of objects whose class is not among those that are loaded")
	tell(r.Lost, "%d bytes within objects that could not be read: zeros stand for them")
	tell(uint64(r.Cut), "%d elements of arrays that are too long for the format")
	tell(uint64(r.UnreadClasses), "%d classes that could not be read, with their objects")
	tell(uint64(r.NoLocals), "handles of native code on %d threads: objects that only these keep look dead")
	if r.NoGlobals {
		all = append(all, "global handles of native code: objects that only these keep look dead")
	}
	tell(uint64(r.CutStacks), "the oldest frames on the stacks of %d threads: objects that only these keep look dead")
	if r.Threads > 0 {
		all = append(all, "handles of outer native frames (of methods that called Java or pushed a frame): objects that "+
			"only these keep look dead")
	}
	return all
}
