//go:build linux

package ptrace

import "goprof/process"

// Memory is a process.Target whose memory is read by the Runner of a Tracer. Tracer.After and the callback of
// LookUnstoppedDuring read on the tracing thread, where stops may be pending. Their reads must end in time, as those of
// the looks do. The reads of a Memory belong to the present look. If one read does not return in time, all later reads
// of that look fail.
//
// Ask nothing else of the Target on the tracing thread: finding an image or a symbol may read files.
type Memory struct {
	process.Target
	t *Tracer
}

// NewMemory makes a Memory. It reads by itself until a Tracer serves it.
func NewMemory(t process.Target) *Memory { return &Memory{Target: t} }

// Serve makes the Tracer read for m, until the Tracer is closed or serves another Memory.
func (t *Tracer) Serve(m *Memory) { m.t, t.served = t, m }

func (t *Tracer) stopServing() {
	if m := t.served; m != nil && m.t == t {
		m.t = nil
	}
}

// Read fills b with the bytes at addr.
func (m *Memory) Read(addr uint64, b []byte) error {
	if m.t == nil {
		return m.Target.Read(addr, b)
	}
	for len(b) > 0 {
		n := m.t.readFor(addr, b)
		if n == 0 {
			return process.ErrFault
		}
		addr, b = addr+uint64(n), b[n:]
	}
	return nil
}

// ReadMany reads many ranges and sets OK in each.
func (m *Memory) ReadMany(rs []process.Range) {
	if m.t == nil {
		m.Target.ReadMany(rs)
		return
	}
	for i := range rs {
		rs[i].OK = false
	}
	for len(rs) > 0 {
		rs = rs[m.t.readManyFor(rs):]
	}
}

// Global finds nothing on the tracing thread, because looking a symbol up may read files.
func (m *Memory) Global(image, symbol string) (uint64, error) {
	if m.t == nil {
		return m.Target.Global(image, symbol)
	}
	return 0, process.ErrNoSymbol
}

// readFor copies as much of the target's memory as fits into the Runner's room. It returns how many bytes it copied.
func (t *Tracer) readFor(addr uint64, b []byte) int {
	d := t.reader
	if d == nil {
		return 0
	}
	t.bringRunner()
	n := min(len(b), len(d.stack))
	d.set(0, &d.stack[0], addr, n)
	if t.fetch(t.lookTID, 0, 1) < n {
		return 0
	}
	return copy(b, d.stack[:n])
}

// readManyFor reads the first ranges, as many as fit into one call, and returns how many it has handled.
func (t *Tracer) readManyFor(rs []process.Range) int {
	d := t.reader
	if d == nil {
		return len(rs)
	}
	t.bringRunner()
	k, size := 0, 0
	for k < len(rs) && k < len(d.remote) && size+len(rs[k].Buf) <= len(d.stack) {
		d.remote[k] = vector{uintptr(rs[k].Addr), uintptr(len(rs[k].Buf))}
		size += len(rs[k].Buf)
		k++
	}
	if k == 0 {
		return 1 // this range is larger than any that goprof asks for
	}
	d.local[0].base, d.local[0].len = d.stackAt(), uintptr(size)
	got := t.fetchInto(t.lookTID, 0, 1, 0, uintptr(k))
	from := d.stack
	for i := range rs[:k] {
		n := len(rs[i].Buf)
		if got < n { // the kernel stops at the first bad address and does not say where
			return i + 1
		}
		copy(rs[i].Buf, from[:n])
		rs[i].OK = true
		from, got = from[n:], got-n
	}
	return k
}

// Apart calls read outside of any look. read uses a Memory that t serves. Apart returns false if the target's memory
// did not answer in time. While an earlier read has not returned, all reads fail.
func (t *Tracer) Apart(read func()) bool {
	if !t.onItsThread() {
		return false
	}
	if t.apart == 0 {
		t.apart = t.proc.AnyThread()
	}
	if t.readIsUnderWay(t.apart) || !t.openReader() {
		t.silent = true
		read()
		t.silent = false
		return false
	}
	t.lookTID = t.apart
	t.pin()
	defer t.unpin()
	t.beginReads()
	read()
	return t.readsCameBack(t.apart) == Taken
}

// ApartFailed reports that Apart could not read. Apart reads memory through a thread, which may have ended. The next
// call uses another thread.
func (t *Tracer) ApartFailed() { t.apart = 0 }
