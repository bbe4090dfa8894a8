package vmstructs

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"goprof/process"
	"goprof/process/maybe"
)

func counterEntry(name string, value any) []byte {
	b := make([]byte, perfEntry)
	b = append(b, name...)
	b = append(b, 0)
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	binary.LittleEndian.PutUint32(b[perfNameOffset:], perfEntry)
	binary.LittleEndian.PutUint32(b[perfDataOffset:], uint32(len(b)))
	switch v := value.(type) {
	case int:
		b[perfTypeOffset] = 'J'
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	case string:
		b[perfTypeOffset] = 'B'
		binary.LittleEndian.PutUint32(b[perfVectorOffset:], uint32(len(v)+1))
		b = append(b, v+"\x00"...)
	}
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	return b
}

// counterBytes makes an area with these entries.
func counterBytes(size int, entries ...[]byte) []byte {
	b := make([]byte, perfPrologue)
	binary.LittleEndian.PutUint32(b, perfMagic)
	binary.LittleEndian.PutUint32(b[perfEntryOffset:], perfPrologue)
	binary.LittleEndian.PutUint32(b[perfEntries:], uint32(len(entries)))
	for _, e := range entries {
		b = append(b, e...)
	}
	return append(b, make([]byte, max(0, size-len(b)))...)
}

func TestCounters(t *testing.T) {
	a := &counterArea{bytes: counterBytes(1024, counterEntry("sun.gc.n", 7), counterEntry("sun.gc.cause", "No GC"),
		counterEntry("a.negative", -1))}
	if !a.index() {
		t.Fatal("no counters")
	}
	c := Counters{a}
	if n, ok := c.Long("sun.gc.n"); n != 7 || !ok {
		t.Errorf("%d %v", n, ok)
	}
	if n, ok := c.Long("a.negative"); n != -1 || !ok {
		t.Errorf("%d %v", n, ok)
	}
	if s, ok := c.Text("sun.gc.cause"); s != "No GC" || !ok {
		t.Errorf("%q %v", s, ok)
	}
	for _, name := range []string{"", "sun.gc", "sun.gc.n2"} {
		if _, ok := c.Long(name); ok {
			t.Errorf("%q is known", name)
		}
	}
	if _, ok := c.Text("sun.gc.n"); ok {
		t.Error("a number is taken for a text")
	}
	if len(c.Names()) != 3 {
		t.Errorf("%q", c.Names())
	}
	// A new entry is found, and a changed value is seen.
	copy(a.bytes, counterBytes(1024, counterEntry("sun.gc.n", 8), counterEntry("sun.gc.cause", "No GC"),
		counterEntry("a.negative", -1), counterEntry("late", 5)))
	a.index()
	if n, _ := c.Long("late"); n != 5 {
		t.Error("a counter that was added later is not found")
	}
	if n, _ := c.Long("sun.gc.n"); n != 8 {
		t.Errorf("%d", n)
	}
}

// TestCounterBeingMade: the JVM has counted an entry, but not written it yet. It is found later.
func TestCounterBeingMade(t *testing.T) {
	early, whole := counterEntry("early", 5), counterBytes(1024, counterEntry("late", 6))
	a := &counterArea{bytes: counterBytes(1024, early, make([]byte, 64))}
	c := Counters{a}
	for i, want := range []int64{0, 6} {
		if i == 1 {
			copy(a.bytes, counterBytes(1024, early, whole[perfPrologue:]))
			binary.LittleEndian.PutUint32(a.bytes[perfEntries:], 2)
		}
		a.index()
		if n, _ := c.Long("early"); n != 5 {
			t.Errorf("early: %d", n)
		}
		if n, ok := c.Long("late"); n != want || ok != (want != 0) {
			t.Errorf("late: %d %t", n, ok)
		}
	}
}

func FuzzCounters(f *testing.F) {
	f.Add(counterBytes(512, counterEntry("sun.gc.n", 7), counterEntry("sun.gc.cause", "No GC")))
	f.Add(counterBytes(64))
	f.Add(counterBytes(0, counterEntry("x", strings.Repeat("long", 400))))
	f.Fuzz(func(t *testing.T, b []byte) {
		a := &counterArea{bytes: b}
		if !a.index() {
			return
		}
		c := Counters{a}
		names := c.Names()
		if len(names) > maxCounters {
			t.Fatalf("%d counters", len(names))
		}
		for _, name := range names {
			_, number := c.Long(name)
			text, isText := c.Text(name)
			if number == isText || !utf8.ValidString(text) || len(text) > 3*maxCounterText {
				t.Fatalf("%q: %v %v %q", name, number, isText, text)
			}
		}
	})
}

func TestOperationName(t *testing.T) {
	for symbol, want := range map[string]string{"_ZTV25VM_G1CollectForAllocation": "G1CollectForAllocation",
		"_ZTV12VM_Operation": "Operation", "_ZTV7nmethod": "", "_ZTV": "", "": "", "_ZTVN3foo3VM_xE": "", "_ZTV3VM_": ""} {
		if got, ok := operationName(symbol); got != want || ok != (want != "") {
			t.Errorf("%q is %q", symbol, got)
		}
	}
}

func TestNativeRoles(t *testing.T) {
	for comm, want := range map[string]NativeRole{"GC Thread#0": OfGC, "G1 Conc#0": OfGC, "ZWorkerYoung#0": OfGC,
		"XDirector": OfGC, "ShenWorker#0": OfGC, "Gang worker#0 (": OfGC, "VM Thread": OfVM, "VM Periodic Tas": OfVM,
		"VM Peri..Thread": OfVM, "java": NotOfVM, "GCC": NotOfVM, "": NotOfVM, "Zookeeper": NotOfVM} {
		if got := NativeRoleOf(comm); got != want {
			t.Errorf("%q is %d", comm, got)
		}
	}
}

func TestThreadStateMoves(t *testing.T) {
	for state, moves := range map[ThreadState]bool{StateInJava: true, StateInVM: true, StateInVM + 1: true,
		StateInJava + 1:   true,
		StateInNative + 1: true, StateInNative: false, StateBlocked: false, StateBlocked + 1: false, StateNew: false} {
		if state.Moves() != moves {
			t.Errorf("%v: %v", state, !moves)
		}
	}
}

// noise is a target with memory at all addresses. The memory has random contents: words that look like pointers,
// numbers and texts. A second read of the same address returns something else.
type noise struct {
	*fakeTarget
	random *rand.Rand
	count  int
}

const maxNoise = 3 << 20

func (n *noise) Read(addr uint64, p []byte) error {
	if n.count++; n.count > maxNoise {
		panic(tooMuch{n.count, 0})
	}
	if n.random.IntN(64) == 0 {
		return process.ErrFault
	}
	for i := 0; i < len(p); i += 8 {
		v := n.random.Uint64()
		switch n.random.IntN(5) {
		case 0:
			v = 0
		case 1:
			v = v>>17&^7 | 8 // this looks like a pointer
		case 2:
			v %= 300
		case 3:
			copy(p[i:], "CodeHea\x00")
			continue
		}
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], v)
		copy(p[i:], w[:])
	}
	return nil
}

func (n *noise) ReadMany(rs []process.Range) {
	for i := range rs {
		rs[i].OK = n.Read(rs[i].Addr, rs[i].Buf) == nil
	}
}

// TestPolled: in JDK 8 without symbols, the polling page is unreadable while threads are asked to stop. If the page's
// address cannot be read, or in a later JDK, the state is not known.
func TestPolled(t *testing.T) {
	const variable, page = 0x7f0000001000, 0x7f0000005000
	for what, c := range map[string]struct {
		jdk8, mapped, readable bool
		want                   maybe.Value[SafepointState]
	}{
		"nobody is asked": {true, true, true, maybe.Known(NotSynchronized)},
		"asked":           {true, true, false, maybe.Known(Polled)},
		"no memory":       {true, false, false, maybe.Value[SafepointState]{}},
		"a later JDK":     {false, true, true, maybe.Value[SafepointState]{}},
	} {
		f := newFake()
		if c.mapped {
			f.put64(variable, page)
		}
		if c.readable {
			f.put(page, make([]byte, 8)...)
		}
		h := &Health{vm: newVM(f, &layout{jdk8: c.jdk8, health: healthLayout{polling: variable}})}
		if got := h.Safepoint(); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}

// TestHealthOfNoise: for any contents of a JVM, no function panics or runs without end, and each amount is bounded.
func TestHealthOfNoise(t *testing.T) {
	for _, j := range loadTables(t) {
		for seed := range uint64(6) {
			t.Run(fmt.Sprint(j.name, " ", seed), func(t *testing.T) { healthOfNoise(t, j, seed) })
		}
	}
}

func healthOfNoise(t *testing.T, j jdkTables, seed uint64) {
	l, _ := resolve(j.tab)
	n := &noise{newFake(), rand.New(rand.NewPCG(seed, 7)), 0}
	vm := newVM(n, l)
	vm.heaps = []codeHeap{{addr: 0x7f0000001000, low: 0x7f0000000000, boundary: 0x7f0010000000, log2: 7}}
	h := &Health{vm: vm, virtual: vm.NewContinuations(), allocations: vm.NewAllocations()}
	h.symbols = healthSymbols{safepoint: 8, operation: 16, compile: 24, outOfMemory: []uint64{32, 40},
		overflow: []uint64{48},
		pending:  56, operations: map[uint64]string{300: "x"}}
	check := func(what string, m maybe.Value[uint64]) {
		if v, ok := m.Get(); ok && v > maxHeapBytes*2 {
			t.Errorf("%s: %d", what, v)
		}
	}
	var threads []Thread
	for i := range 100 {
		threads = append(threads, Thread{Addr: 0x7f0000100000 + uint64(i)*4096, NSTID: i + 1})
	}
	for range 3 {
		for name, read := range map[string]func(uint64, *HeapUse){"serial": h.serialHeap, "parallel": h.parallelHeap,
			"g1": h.g1Heap, "z": h.zHeap, "shenandoah": h.shenandoahHeap, "epsilon": h.epsilonHeap} {
			var u HeapUse
			read(0x7f0000002000, &u)
			for _, a := range []Amount{u.Heap, u.Young, u.Old} {
				check(name, a.Used)
				check(name, a.Committed)
				check(name, a.Max)
			}
		}
		h.Heap()
		for _, part := range h.Code() {
			check("code", part.Used)
			if !utf8.ValidString(part.Name) {
				t.Errorf("%q", part.Name)
			}
		}
		sp := &Safepoints{health: h, state: 8, begun: 16, count: 24, took: 32, tick: 1}
		for _, state := range []uint64{8, 0} {
			sp.state = state
			if g, ok := sp.Read(); ok && g.Took < 0 {
				t.Errorf("safepoints took %v", g.Took)
			}
			if list, _ := sp.Missing(nil); len(list) > maxThreads {
				t.Errorf("%d threads are missing", len(list))
			}
		}
		if got := h.Allocated(threads); len(got) != len(threads) {
			t.Errorf("%d threads", len(got))
		}
		if list := h.Mounted(threads); len(list) > len(threads) {
			t.Errorf("%d mounted", len(list))
		}
		h.Safepoint()
		h.Operation()
		h.Compiling()
		check("errors", h.OutOfMemory())
		check("errors", h.Overflows())
		check("finalizers", h.Finalizers())
		if p, ok := h.Pending(1000).Get(); ok && p > 1000 {
			t.Errorf("%d pending", p)
		}
		h.ThreadCount()
		h.Counters()
	}
}

// TestAllocatedIsReadTwice: a thread gives its buffer back while goprof reads the thread. goprof reads it again.
func TestAllocatedIsReadTwice(t *testing.T) {
	for _, j := range loadTables(t) {
		l, _ := resolve(j.tab)
		f := newFake()
		h := &Health{vm: newVM(f, l), allocations: newVM(f, l).NewAllocations()}
		const thread = 0x7f0000100000
		set := func(count, start, top uint64) {
			f.put64(thread+uint64(l.health.allocated), count)
			f.put64(thread+uint64(l.health.tlabStart), start)
			f.put64(thread+uint64(l.health.tlabTop), top)
		}
		set(1000, 0x1000, 0x1100)
		reads := 0
		f.onRead = func(addr uint64) {
			if addr == thread+uint64(l.health.tlabTop) {
				if reads++; reads == 1 { // the buffer's bytes were added to the count, but the buffer is still there
					set(1256, 0x1000, 0x1100)
				} else if reads == 2 {
					set(1256, 0, 0)
				}
			}
		}
		got := h.Allocated([]Thread{{Addr: thread}})
		if n, ok := got[0].Get(); !ok || n != 1256 {
			t.Errorf("%s: %v after %d reads", j.name, got[0], reads)
		}
	}
}
