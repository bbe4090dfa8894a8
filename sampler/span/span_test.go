//go:build linux

package span

import (
	"encoding/binary"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/arch/threadpointer"
	"goprof/process"
	"goprof/sampler/bpf"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
	"goprof/sampler/ring"
)

// reading is a program that reads the context of this OS thread, as if the process published it in each of some ways.
type reading struct {
	*Reader
	mem  []byte
	prog int
}

func newReading(t testing.TB, times int, list ...process.Local) *reading {
	t.Helper()
	r, err := New(1)
	if err != nil {
		t.Fatal(err)
	}
	contexts := new(ptrace.Contexts)
	contexts.Set(list)
	r.Follow(unix.Getpid(), contexts)
	fd, mem, err := bpf.NewMapped(unix.Getpagesize())
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	c := bpf.New()
	for range times {
		r.Read(c, -ring.SpanSize)
	}
	c.Value(bpf.R6, fd)
	for at := 0; at < ring.SpanSize; at += 8 {
		c.Load(bpf.Load64, bpf.R1, bpf.R10, at-ring.SpanSize)
		c.Store(bpf.R6, at, bpf.R1)
	}
	c.Imm(bpf.MovImm, bpf.R0, 0)
	c.Op(bpf.Exit, 0, 0, 0, 0)
	log := make([]byte, 1<<20)
	prog, err := c.LoadAs(bpf.RawTracepoint, log)
	if err != nil {
		t.Fatalf("%v: %s", err, unix.ByteSliceToString(log))
	}
	return &reading{r, mem, prog}
}

func (r *reading) context(t testing.TB) look.Context {
	t.Helper()
	if err := bpf.TestRun(r.prog); err != nil {
		t.Fatal(err)
	}
	return ring.Bytes(r.mem).Span(0)
}

func (r *reading) close() {
	unix.Close(r.prog)
	unix.Munmap(r.mem)
	r.Close()
}

// withPointer calls f locked to an OS thread, with its thread pointer.
func withPointer(t testing.TB, f func(own uint64)) {
	t.Helper()
	if _, err := pointerAt(); err != nil {
		if unix.Geteuid() != 0 {
			t.Skip("needs BPF: ", err)
		}
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := threadpointer.With(func(own uint64) error { f(own); return nil }); err != nil {
		t.Fatal(err)
	}
}

// published returns the way to a record of this OS thread, whose thread pointer is own.
func published(t testing.TB, own uint64) process.Local {
	record := &[4]uint64{7, 8, 9, 1}
	pointer := new(uint64)
	var keep runtime.Pinner
	t.Cleanup(keep.Unpin)
	keep.Pin(record)
	keep.Pin(pointer)
	*pointer = uint64(uintptr(unsafe.Pointer(record)))
	return process.Local{Offset: int64(uint64(uintptr(unsafe.Pointer(pointer))) - own)}
}

// BenchmarkRead measures a read if nothing is published, and if there is a record.
func BenchmarkRead(b *testing.B) {
	for name, publishes := range map[string]bool{"nothing": false, "read": true} {
		b.Run(name, func(b *testing.B) {
			withPointer(b, func(own uint64) {
				var ways []process.Local
				if publishes {
					ways = append(ways, published(b, own))
				}
				const times = 16 // in one system call
				r := newReading(b, times, ways...)
				defer r.close()
				for range (b.N + times - 1) / times {
					bpf.TestRun(r.prog)
				}
			})
		})
	}
}

// TestRead: the program finds the record of a thread in each way that there is. A way that leads nowhere leads to no
// record.
func TestRead(t *testing.T) {
	withPointer(t, func(own uint64) { checkRead(t, own) })
}

func checkRead(t *testing.T, own uint64) {
	var keep runtime.Pinner
	defer keep.Unpin()
	at := func(words []uint64) uint64 {
		keep.Pin(&words[0])
		return uint64(uintptr(unsafe.Pointer(&words[0])))
	}
	from := func(addr uint64) int64 { return int64(addr - own) }
	record := func(edit func(b []byte)) uint64 {
		b := make([]byte, 32)
		b[0], b[15], b[16], b[23], b[look.ContextValid] = 7, 0xee, 9, 8, 1
		edit(b)
		words := make([]uint64, 4)
		for i := range words {
			words[i] = binary.NativeEndian.Uint64(b[8*i:])
		}
		return at(words)
	}
	good := record(func([]byte) {})
	static := func(pointer uint64) process.Local { return process.Local{Offset: from(at([]uint64{pointer}))} }
	// a table of 5 blocks, of the age 40, as glibc has it: the variable is 16 bytes into block 3
	table := func(block, age uint64) process.Local {
		words := []uint64{5, 0, age, 0, 0, 0, 0, 0, block, 0, 0, 0}
		return process.Local{Table: true, At: from(at([]uint64{at(words) + 16})), Head: -16, HeadLen: 24,
			Block: 48, Module: 3, Least: 40, Offset: 16}
	}
	block := at([]uint64{0, 0, good})
	unknown := table(block, 40)
	unknown.Module = 6
	for name, c := range map[string]struct {
		ways []process.Local
		want look.ContextState
	}{
		"nothing is published":     {nil, look.ContextUnasked},
		"a static variable":        {[]process.Local{static(good)}, look.ContextRead},
		"it is nil":                {[]process.Local{static(0)}, look.ContextNone},
		"the first that is there":  {[]process.Local{static(0), static(good)}, look.ContextRead},
		"an odd address":           {[]process.Local{static(good + 1)}, look.ContextUnreadable},
		"an address that is none":  {[]process.Local{static(4096)}, look.ContextUnreadable},
		"a way that leads nowhere": {[]process.Local{{Offset: 4096 - int64(own)}}, look.ContextUnreadable},
		"and then one that leads": {[]process.Local{static(4096), static(0), static(0), static(good)},
			look.ContextRead},
		"it is being written": {[]process.Local{static(record(func(b []byte) { b[look.ContextValid] = 0 }))},
			look.ContextInvalid},
		"half of it": {[]process.Local{static(record(func(b []byte) { clear(b[16:24]) }))},
			look.ContextHalf},
		"a table":                       {[]process.Local{table(block, 40)}, look.ContextRead},
		"a table that is too old":       {[]process.Local{table(block, 39)}, look.ContextNone},
		"a table without the library":   {[]process.Local{unknown}, look.ContextNone},
		"a block that is not there yet": {[]process.Local{table(^uint64(0), 40)}, look.ContextNone},
	} {
		r := newReading(t, 1, c.ways...)
		got := r.context(t)
		r.close()
		if got.State != c.want {
			t.Errorf("%s: %d, not %d", name, got.State, c.want)
		}
		if c.want == look.ContextRead && (got.Trace[0] != 7 || got.Trace[15] != 0xee || got.Span != [8]byte{9, 7: 8}) {
			t.Errorf("%s: trace %x span %x", name, got.Trace, got.Span)
		}
	}
}

// lost counts what a ring had no room for.
type lost int64

func (l *lost) Record(ring.Bytes, ring.Record) {}
func (l *lost) Lose(_ ptrace.Outcome, n int64) { *l += lost(n) }

// TestFullRing: a program with a span lets its sample pass while the ring has room. If the ring is full, it drops the
// sample, so that one record is lost, not two.
func TestFullRing(t *testing.T) {
	withPointer(t, func(own uint64) { fillRing(t, own) })
}

func fillRing(t *testing.T, own uint64) {
	contexts := new(ptrace.Contexts)
	contexts.Set([]process.Local{published(t, own)})
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	cpu := 0
	for !all.IsSet(cpu) {
		cpu++
	}
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	defer unix.SchedSetaffinity(0, &all)
	rings, err := ring.Open([]int{cpu}, ring.Floor, ring.Floor)
	if err != nil {
		t.Fatal(err)
	}
	defer rings.Close()
	r, err := New(0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.Follow(unix.Getpid(), contexts)
	o := r.NewOutputs()
	defer o.Close()
	for range 2 { // again: the CPU was off meanwhile
		if o.Open([]int{cpu}, rings); len(o.events) != 1 {
			t.Fatal(o.events)
		}
	}
	fd, mem, err := bpf.NewMapped(unix.Getpagesize())
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)
	defer unix.Close(fd)
	c := bpf.New()
	c.Mov(bpf.R6, bpf.R1)
	c.Value(bpf.R7, fd)
	o.Write(c, -ring.SpanSize)
	c.Store(bpf.R7, 0, bpf.R0)
	c.Imm(bpf.MovImm, bpf.R0, 0)
	c.Op(bpf.Exit, 0, 0, 0, 0)
	prog, err := c.LoadAs(bpf.RawTracepoint, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(prog)
	passes := func() bool {
		if err := bpf.TestRun(prog); err != nil {
			t.Fatal(err)
		}
		return mem[0] == 1
	}
	n := 0
	for passes() {
		if n++; n*ring.SpanRecord > ring.Floor {
			t.Fatal("the ring is never full")
		}
	}
	var gone lost
	rings.Drain(&gone)
	if n == 0 || !passes() {
		t.Errorf("%d samples had room, and then none", n)
	}
	if rings.Drain(&gone); gone != 1 {
		t.Errorf("%d records are lost", gone)
	}
}

// TestFind: a word that is there twice may be the wrong one.
func TestFind(t *testing.T) {
	mem := make([]byte, 64)
	mem[24], mem[40] = 1, 2
	if at, err := find(mem, 1); at != 24 || err != nil {
		t.Error(at, err)
	}
	mem[40] = 1
	for _, word := range []uint64{0, 1, 3} {
		if at, err := find(mem, word); err == nil {
			t.Error(word, at)
		}
	}
}

// TestTooFewFiles: reading spans takes no descriptor that a run needs.
func TestTooFewFiles(t *testing.T) {
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &lim)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 256, Max: lim.Max}); err != nil {
		t.Fatal(err)
	}
	if r, err := New(0); err != ErrFiles || r != nil {
		t.Errorf("%v, %v", r, err)
	}
}
