//go:build linux

package ptrace

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/process"
	"goprof/sampler/look"
	"goprof/testdata/ctest"
)

// contextWorld is a Tracer, and in the test's own memory all that leads to a thread's context: variable, table, block,
// record.
type contextWorld struct {
	*Tracer
	thread, table, block, record []byte
}

// contextLayout has the thread pointer among the general registers, on every CPU.
var contextLayout = arch.LocalsLayout{RegSet: arch.RegSetGeneral, PointerAt: 64}

const contextModule = 3

// newContextWorld publishes a variable at a fixed distance from the thread pointer, or through a table.
func newContextWorld(table bool) *contextWorld {
	d, err := newReader(4096)
	if err != nil {
		panic(err)
	}
	w := &contextWorld{&Tracer{reader: d, locals: &contextLayout, Contexts: new(Contexts)}, make([]byte, 64),
		make([]byte, 16*8), make([]byte, 64), make([]byte, 64)}
	way := process.Local{Offset: 16}
	slot := w.thread
	if table {
		way = process.Local{Table: true, Offset: 16, At: 8, Head: -16, HeadLen: 24, Block: contextModule * 16,
			Module: contextModule, Least: 7}
		ctest.Put(w.thread, 8, ctest.At(w.table)+16)
		ctest.Put(w.table, 0, contextModule)
		ctest.Put(w.table, 16, 7)
		ctest.Put(w.table, 16+contextModule*16, ctest.At(w.block))
		slot = w.block
	}
	ctest.Put(slot, 16, ctest.At(w.record))
	for i := range 24 {
		w.record[i] = byte(i + 1)
	}
	w.record[look.ContextValid] = 1
	ctest.Put(w.regs[:], 64, ctest.At(w.thread))
	w.Contexts.Set([]process.Local{way})
	w.readUntil = Monotonic() + int64(time.Hour)
	w.prepareContext()
	return w
}

// look returns what the pause finds, and how many reads it makes.
func (w *contextWorld) look() (c look.Context, reads int64) {
	before := w.context.reads
	w.Tracer.look = pauseLeft{}
	w.copyContext(os.Getpid(), 0)
	var to look.Look
	w.fill(0, &Hint{}, &to)
	return to.Context, w.context.reads - before
}

// TestContext: the pause copies the record. It needs one read once the record's place is known, and one more if the
// thread has another record by now.
func TestContext(t *testing.T) {
	for name, first := range map[string]int64{"fixed": 2, "table": 5} {
		w := newContextWorld(name == "table")
		want := look.Context{State: look.ContextRead}
		copy(want.Trace[:], w.record)
		copy(want.Span[:], w.record[16:])
		if c, reads := w.look(); c != want || reads != first {
			t.Errorf("%s: %+v by %d reads", name, c, reads)
		}
		if c, reads := w.look(); c != want || reads != 1 {
			t.Errorf("%s, again: %+v by %d reads", name, c, reads)
		}
		w.record[16], want.Span[0] = 99, 99
		if c, reads := w.look(); c != want || reads != 1 {
			t.Errorf("%s, another span: %+v by %d reads", name, c, reads)
		}
		other := append([]byte(nil), w.record...)
		other[0], want.Trace[0] = 77, 77
		slot := w.thread
		if name == "table" {
			slot = w.block
		}
		ctest.Put(slot, 16, ctest.At(other))
		if c, reads := w.look(); c != want || reads != 2 {
			t.Errorf("%s, another record: %+v by %d reads", name, c, reads)
		}
		ctest.Put(slot, 16, 0)
		if c, reads := w.look(); c != (look.Context{State: look.ContextNone}) || reads != 1 {
			t.Errorf("%s, detached: %+v by %d reads", name, c, reads)
		}
		if n := testing.AllocsPerRun(10, func() { w.copyContext(os.Getpid(), 0) }); n != 0 {
			t.Errorf("%s: %.0f allocations", name, n)
		}
	}
}

// TestContextTakesNoLonger: once the time of a look's reads is over, nothing more is read.
func TestContextTakesNoLonger(t *testing.T) {
	for _, table := range []bool{false, true} {
		w := newContextWorld(table)
		w.readUntil = 1
		w.copyContext(os.Getpid(), 0)
		if got, reads := w.Tracer.look.context, w.context.reads; got != look.ContextUnreadable || reads != 0 {
			t.Errorf("table %v: %v by %d reads", table, got, reads)
		}
	}
}

// TestMovedTable: if a thread's table has grown, it may have moved, and the thread may have another block.
func TestMovedTable(t *testing.T) {
	w := newContextWorld(true)
	w.look()
	table, block, record := append([]byte(nil), w.table...), make([]byte, 64), append([]byte(nil), w.record...)
	record[0] = 88
	ctest.Put(block, 16, ctest.At(record))
	ctest.Put(table, 16+contextModule*16, ctest.At(block))
	ctest.Put(w.thread, 8, ctest.At(table)+16)
	if c, reads := w.look(); c.State != look.ContextRead || c.Trace[0] != 88 || reads > 6 {
		t.Errorf("%+v by %d reads", c, reads)
	}
	ctest.Put(table, 16, 6) // the table is older than the library
	if c, _ := w.look(); c.State != look.ContextNone {
		t.Errorf("an old table: %+v", c)
	}
}

// TestNoContext: if nothing is published, the pause reads nothing more.
func TestNoContext(t *testing.T) {
	w := newContextWorld(false)
	w.Contexts.Set(nil)
	if c, reads := w.look(); c != (look.Context{}) || reads != 0 {
		t.Errorf("%+v by %d reads", c, reads)
	}
	w.Contexts = nil
	if c, reads := w.look(); c != (look.Context{}) || reads != 0 {
		t.Errorf("%+v by %d reads", c, reads)
	}
}

// TestHostileContext: whatever memory holds, the look ends after a few reads, and an id is taken only from a record
// that is whole and valid.
func TestHostileContext(t *testing.T) {
	pages, err := unix.Mmap(-1, 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(pages)
	unix.Mprotect(pages[4096:], unix.PROT_NONE)
	nowhere := ctest.At(pages) + 4096
	const unreadable, none, invalid, half = look.ContextUnreadable, look.ContextNone, look.ContextInvalid, look.ContextHalf
	thread := func(at int, v uint64) func(*contextWorld) {
		return func(w *contextWorld) { ctest.Put(w.thread, at, v) }
	}
	table := func(at int, v uint64) func(*contextWorld) {
		return func(w *contextWorld) { ctest.Put(w.table, at, v) }
	}
	cases := map[string]struct {
		change func(w *contextWorld)
		table  bool
		want   look.ContextState
	}{
		"thread pointer nowhere": {func(w *contextWorld) { ctest.Put(w.regs[:], 64, nowhere) }, false, unreadable},
		"record nowhere":         {thread(16, nowhere), false, unreadable},
		"record at an odd address": {func(w *contextWorld) { ctest.Put(w.thread, 16, ctest.At(w.record)+1) },
			false, unreadable},
		"record at memory's end": {thread(16, nowhere-20), false, unreadable},
		"record around 0":        {thread(16, ^uint64(1)), false, unreadable},
		"not valid":              {func(w *contextWorld) { w.record[24] = 0 }, false, invalid},
		"valid is 2":             {func(w *contextWorld) { w.record[24] = 2 }, false, invalid},
		"valid is 255":           {func(w *contextWorld) { w.record[24] = 255 }, true, invalid},
		"no trace":               {func(w *contextWorld) { clear(w.record[:16]) }, false, half},
		"no span":                {func(w *contextWorld) { clear(w.record[16:24]) }, false, half},
		"no ids":                 {func(w *contextWorld) { clear(w.record[:24]) }, false, none},
		"no table":               {thread(8, 0), true, unreadable},
		"table nowhere":          {thread(8, nowhere), true, unreadable},
		"table too short":        {table(0, contextModule-1), true, none},
		"table too old":          {table(16, 6), true, none},
		"no block":               {table(16+contextModule*16, 0), true, none},
		"block not needed yet":   {table(16+contextModule*16, ^uint64(0)), true, none},
		"block nowhere":          {table(16+contextModule*16, nowhere), true, unreadable},
		"the record is the table": {func(w *contextWorld) { ctest.Put(w.block, 16, ctest.At(w.table)) }, true,
			invalid},
	}
	for name, c := range cases {
		for _, known := range []bool{false, true} {
			w := newContextWorld(c.table)
			if known {
				w.look()
			}
			c.change(w)
			if got, reads := w.look(); got != (look.Context{State: c.want}) || reads > 6 {
				t.Errorf("%s, known %v: %+v by %d reads", name, known, got, reads)
			}
		}
	}
}

// TestSeveralContexts: of several variables the first one with a valid record counts.
func TestSeveralContexts(t *testing.T) {
	w := newContextWorld(false)
	second := append([]byte(nil), w.record...)
	second[0] = 55
	ctest.Put(w.thread, 24, ctest.At(second))
	w.Contexts.Set([]process.Local{{Offset: 16}, {Offset: 24}, {Offset: 32}})
	for name, c := range map[string]struct {
		first, second byte
		trace         byte
		want          look.ContextState
	}{
		"both": {1, 1, 1, look.ContextRead}, "the second": {0, 1, 55, look.ContextRead},
		"the first": {1, 0, 1, look.ContextRead}, "none": {0, 0, 0, look.ContextInvalid},
	} {
		w.record[24], second[24] = c.first, c.second
		if got, _ := w.look(); got.State != c.want || got.Trace[0] != c.trace {
			t.Errorf("%s: %+v", name, got)
		}
	}
	w.Contexts.Set(make([]process.Local, 100)) // more than there is room for
	w.look()
}

// FuzzContext reads arbitrary records along arbitrary ways.
func FuzzContext(f *testing.F) {
	f.Add([]byte("0123456789abcdef01234567\x01\x00\x00\x00"), uint64(0), uint64(0), uint64(0), true)
	w := map[bool]*contextWorld{false: newContextWorld(false), true: newContextWorld(true)}
	f.Fuzz(func(t *testing.T, record []byte, table, block, slot uint64, through bool) {
		c := look.ParseContext(record)
		read := c.State == look.ContextRead
		if read != (c.Span != [8]byte{} && c.Trace != [16]byte{}) || read && record[look.ContextValid] != 1 {
			t.Fatalf("%x: %+v", record, c)
		}
		v := w[through]
		ctest.Put(v.table, 0, table)
		ctest.Put(v.table, 16+contextModule*16, block)
		ctest.Put(v.block, 16, slot)
		ctest.Put(v.thread, 16, slot)
		if _, reads := v.look(); reads > 6 {
			t.Fatalf("%d reads", reads)
		}
	})
}

// BenchmarkContext measures how much a context adds to a pause: if nothing is published, if the record is where it was,
// and if it is another one each time.
func BenchmarkContext(b *testing.B) {
	pid := os.Getpid()
	b.Run("nothing published", func(b *testing.B) {
		w := newContextWorld(false)
		w.Contexts.Set(nil)
		for b.Loop() {
			w.copyContext(pid, 0)
		}
	})
	for name, table := range map[string]bool{"fixed": false, "table": true} {
		w := newContextWorld(table)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				w.copyContext(pid, 0)
			}
		})
		other := append([]byte(nil), w.record...)
		slot := w.thread
		if table {
			slot = w.block
		}
		b.Run(name+", another record each time", func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				ctest.Put(slot, 16, []uint64{ctest.At(w.record), ctest.At(other)}[n&1])
				w.copyContext(pid, 0)
			}
		})
	}
}
