//go:build linux

package ptrace

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/process"
	"goprof/sampler/osthread"
)

// A read of the target's memory may never return (package osthread says when). So the tracing thread lets a Runner
// read, and waits for the Runner no longer than readLimit. The Runner is on the same CPU, because waking another CPU
// costs more than the whole pause. The Runner has a higher priority, so it has finished when the call that wakes it
// returns (docs/decisions/0005).

// StandsAtMost bounds a pause in which reads of memory never return. The thread may wait for the reads of a look at
// another thread, then for those of its own look: readLimit each. The rest is a margin for a busy machine.
const StandsAtMost = 100 * time.Millisecond

// readLimit bounds the wait for all reads of one look together. leastWait is the shortest wait for one read: goprof may
// have had no CPU until then.
const (
	readLimit = int64(40 * time.Millisecond)
	leastWait = int64(5 * time.Millisecond)
)

// vector is a struct iovec. It points to a Runner's room or into the target, never into Go's heap.
type vector struct{ base, len uintptr }

// reader is a Runner with the arguments and results of its reads, which are in the Runner's Room.
type reader struct {
	runner *osthread.Runner
	*readerRoom
	stack []byte // a copy of the stack
	under []byte // a copy of the thread's own stack, while the thread is on another one
	cpu   int    // the Runner's CPU, -1: it is not bound
}

type readerRoom struct {
	args     [6]uintptr
	local    [5]vector // goprof's memory for a read
	remote   [64]vector
	side     [MaxSide]byte
	followed [maxFollow]byte
	small    [16]byte
	context  contextReads
	trail    [process.MaxTrailBytes]byte // uses no memory before it is needed
}

func newReader(stackLimit int) (*reader, error) {
	head := int(unsafe.Sizeof(readerRoom{})+63) &^ 63
	stackLimit = (stackLimit + 63) &^ 63
	r, err := osthread.New(head + 2*stackLimit)
	if err != nil {
		return nil, err
	}
	room := r.Room()
	d := &reader{runner: r, readerRoom: (*readerRoom)(unsafe.Pointer(&room[0])), cpu: -1}
	d.stack, d.under = room[head:head+stackLimit], room[head+stackLimit:] // under uses no memory before it is needed
	for i := 0; i < len(d.stack); i += 4096 {
		d.stack[i] = 1 // the kernel allocates the pages now, not in the pause
	}
	goFirst(r.TID(), runnerPriority)
	return d, nil
}

// set makes vector i copy n bytes from the target's address from to goprof's memory at to.
//
//go:nosplit
func (d *reader) set(i int, to *byte, from uint64, n int) {
	d.local[i] = vector{uintptr(unsafe.Pointer(to)), uintptr(n)}
	d.remote[i] = vector{uintptr(from), uintptr(n)}
}

// stackAt returns the address for copies of stacks.
func (d *reader) stackAt() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(d.stack))) }

// fetch makes the read that n vectors describe, from vector first on. It returns how many bytes were read. These are
// fewer than requested if an address is bad, and none if an earlier read of this look has not returned.
//
//go:nosplit
func (t *Tracer) fetch(tid, first int, n uintptr) int {
	return t.fetchInto(tid, uintptr(first), n, uintptr(first), n)
}

// fetchInto is fetch with different numbers of vectors for goprof's memory (to, tos) and for the target's (from,
// froms).
//
//go:nosplit
func (t *Tracer) fetchInto(tid int, to, tos, from, froms uintptr) int {
	d := t.reader
	if t.silent || d == nil {
		return 0
	}
	if t.ownReads != nil {
		return t.readItself(tid, to, tos, from, froms)
	}
	d.args = [6]uintptr{uintptr(tid),
		uintptr(unsafe.Pointer(&d.local[to])), tos, uintptr(unsafe.Pointer(&d.remote[from])), froms, 0}
	d.runner.Go(unix.SYS_PROCESS_VM_READV, &d.args)
	if !d.runner.Returned() && !d.runner.Wait(max(t.readUntil, Monotonic()+leastWait)) {
		t.silent = true
		return 0
	}
	got, e := d.runner.Result()
	if e != 0 {
		return 0
	}
	return int(got)
}

// beginReads starts the time (readLimit) in which reads must return.
func (t *Tracer) beginReads() { t.readUntil = Monotonic() + readLimit }

// BoundTo notes the CPU to which this OS thread is bound (-1: to none).
func (t *Tracer) BoundTo(cpu int) { t.stayAt = cpu }

// bringRunner binds the Runner to the CPU to which this OS thread is bound.
func (t *Tracer) bringRunner() {
	if d := t.reader; t.stayAt >= 0 && d != nil && d.cpu != t.stayAt && t.here.setOnly(d.runner.TID(), t.stayAt) {
		d.cpu = t.stayAt
	}
}

// pin keeps this OS thread on its CPU until unpin is called, and brings the Runner there.
func (t *Tracer) pin() {
	d := t.reader
	t.pinned = 0
	if t.ownReads == nil {
		t.bringRunner()
	}
	if d != nil && t.preempters != nil && t.stayAt >= 0 && d.cpu == t.stayAt {
		return // a preempter has bound this OS thread
	}
	cpu := CurrentCPU()
	if t.ownReads != nil || t.stayAt == cpu && d != nil && d.cpu == cpu {
		return // there is no Runner, or both OS threads are bound to this CPU
	}
	size, ok := t.allowed.get(0)
	if d == nil || !ok || cpu < 0 || cpu/64 >= len(t.here) {
		return
	}
	t.here[cpu/64] = 1 << (cpu % 64)
	if t.here.set(0, size) {
		t.pinned = size
		if d.cpu != cpu && t.here.set(d.runner.TID(), size) {
			d.cpu = cpu
		}
	}
	t.here[cpu/64] = 0
}

// unpin lets this OS thread run on all its CPUs again.
func (t *Tracer) unpin() {
	if t.pinned > 0 {
		t.allowed.set(0, t.pinned)
	}
}
