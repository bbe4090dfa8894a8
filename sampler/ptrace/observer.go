//go:build linux

package ptrace

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/sampler/osthread"
)

// Observer looks at threads without a stop. Meanwhile no thread is stopped or about to stop. So the Observer's OS
// thread reads the target's memory by itself, which takes a third of the time of a Runner's read (docs/decisions/0005).
// If a read does not return, no other thread is held up: the Observer abandons its OS thread.
//
// An Observer belongs to one goroutine.
type Observer struct {
	t     *Tracer
	reads ownReads
	tid   atomic.Int32 // the OS thread that looks
	why   Outcome
}

// NewObserver prepares an Observer for stacks of that size.
func NewObserver(pid int, cpu *arch.CPU, stackLimit int) *Observer {
	o := &Observer{t: NewTracer(pid, cpu)}
	o.t.StackLimit, o.t.ownReads = stackLimit, &o.reads
	o.t.reader = &reader{readerRoom: new(readerRoom), stack: make([]byte, stackLimit), under: make([]byte,
		stackLimit), cpu: -1}
	return o
}

// Each calls look for 0 to n-1, on an OS thread that holds no thread of the target. It returns how many calls have
// returned. If these are fewer than n, a read hangs in the next call. Then do not use the Observer again: it makes no
// more looks, even if the read returns later (IsBack).
func (o *Observer) Each(n int, look func(t *Tracer, i int)) int {
	var done atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		OnThreadHoldingNobody(func() {
			o.tid.Store(int32(unix.Gettid()))
			o.t.ChangeOSThread()
			for i := range n {
				look(o.t, i)
				done.Store(int64(i + 1))
			}
		})
	}()
	for last := int64(0); ; {
		select {
		case <-ended:
			return n
		case <-time.After(time.Duration(readLimit)):
		}
		now := o.reads.count.Load()
		if tid := int(o.tid.Load()); now == last && isUnderWay(now) && osthread.Waits(tid) {
			if o.why = ReadLate; osthread.Sleeps(tid) {
				o.why = Silent
			}
			if o.reads.giveUp(now) {
				return int(done.Load())
			}
		}
		last = now
	}
}

// Why returns the outcome of the look that made this Observer useless: Silent or ReadLate.
func (o *Observer) Why() Outcome { return o.why }

// Serve makes the Observer read for m, from now on.
func (o *Observer) Serve(m *Memory) { o.t.Serve(m) }

// IsBack reports whether the read that was given up has returned.
func (o *Observer) IsBack() bool { return !isUnderWay(o.reads.count.Load()) }

// Close frees the Observer's memory and files. If a read has not returned, Close frees nothing: the kernel may still
// write to that memory.
func (o *Observer) Close() {
	if o.IsBack() {
		o.t.Close()
	}
}

// ownReads counts beginnings and ends of the OS thread's reads of the target's memory.
type ownReads struct {
	count atomic.Int64 // odd while a read is under way; below 0 once it was given up
}

// isUnderWay also holds for counts below 0: givenUp is even.
func isUnderWay(count int64) bool { return count&1 != 0 }

// giveUp gives up the read under way. It returns false if the read has returned.
func (r *ownReads) giveUp(count int64) bool { return r.count.CompareAndSwap(count, count+givenUp) }

const givenUp = -1 << 62

// begin is called before each read, end after it. If the read was given up, end ends the goroutine and its OS thread.
func (r *ownReads) begin() { r.count.Add(1) }

func (r *ownReads) end() {
	if r.count.Add(1) < 0 {
		runtime.Goexit()
	}
}

// readItself is fetchInto for an Observer. Go's scheduler knows of the call, so a garbage collection does not wait for
// it.
func (t *Tracer) readItself(tid int, to, tos, from, froms uintptr) int {
	d := t.reader
	t.ownReads.begin()
	n, _, e := unix.Syscall6(unix.SYS_PROCESS_VM_READV, uintptr(tid), uintptr(unsafe.Pointer(&d.local[to])), tos,
		uintptr(unsafe.Pointer(&d.remote[from])), froms, 0)
	t.ownReads.end()
	if e != 0 {
		return 0
	}
	return int(n)
}
