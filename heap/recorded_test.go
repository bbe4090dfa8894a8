package heap

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/process"
	"goprof/profile"
	"goprof/testdata/captured"
	"goprof/testdata/lies"
	"goprof/vmstructs"
)

// recorded are heaps of real JVMs, named by CPU, collector and JDK. The JVM's own counts are in a file beside each.
// TestRecordHeaps makes them (GOPROF_RECORD=1; those of arm64: scripts/arm64-walks.sh TestRecordHeaps).
var recorded = []string{
	"amd64-serial-25", "amd64-g1-17",
	"arm64-parallel-17", "arm64-g1-17", "arm64-zgc-17",
	"arm64-serial-25", "arm64-g1-25", "arm64-zgc-25",
}

func loadHeap(t testing.TB, name string) *captured.Recording {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".rec"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rec, err := captured.Load(f)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func readerOf(target process.Target) (*Reader, error) {
	vm, err := vmstructs.Open(target)
	if err != nil {
		return nil, err
	}
	return NewReader(vm)
}

// TestRecordedHeap: on any machine, the counts of a recorded heap agree with those of its JVM.
func TestRecordedHeap(t *testing.T) {
	for _, name := range recorded {
		t.Run(name, func(t *testing.T) {
			r, err := readerOf(loadHeap(t, name))
			if err != nil {
				t.Fatal(err)
			}
			h, err := r.Read(Options{All: true})
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(filepath.Join("testdata", name+".histogram"))
			if err != nil {
				t.Fatal(err)
			}
			jdk, _ := strconv.Atoi(name[strings.LastIndex(name, "-")+1:])
			want, got := histogram(string(text)), byName(h)
			compare(t, jdk, h, want, 1000)
			for class, w := range want {
				dead := h.Collector == "ZGC" && got[class].Objects > w.Objects // the JVM counts only live objects
				if got[class] != w && !dead && !varies(class) {
					t.Errorf("%s: %+v, the JVM counts %+v", class, got[class], w)
				}
			}
		})
	}
}

// histogram reads a table of GC.class_histogram.
func histogram(text string) map[string]profile.HeapAmount {
	counts := map[string]profile.HeapAmount{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line) // "1:  2345  67890  [B (java.base@17)"
		if len(f) < 4 || !strings.HasSuffix(f[0], ":") {
			continue
		}
		objects, err1 := strconv.ParseFloat(f[1], 64)
		bytes, err2 := strconv.ParseFloat(f[2], 64)
		if err1 == nil && err2 == nil {
			name := vmstructs.JavaName(f[3])
			counts[name] = counts[name].Plus(profile.HeapAmount{Objects: objects, Bytes: bytes})
		}
	}
	return counts
}

func byName(h *profile.Heap) map[string]profile.HeapAmount {
	m := map[string]profile.HeapAmount{}
	for _, c := range h.Classes {
		m[c.Name] = m[c.Name].Plus(c.HeapAmount)
	}
	return m
}

// varies is true for classes whose counts vary: those with which the JVM fills the unused ends of buffers before it
// counts, and those with made-up names.
func varies(class string) bool {
	return strings.Contains(class, "Lambda") || strings.Contains(class, "Filler") || class == "int[]"
}

// compare compares the result of a reading with the JVM's counts. ZGC and Shenandoah count only live objects, and so
// does G1 of 17 in regions that a full collection has left in place.
func compare(t *testing.T, jdk int, h *profile.Heap, want map[string]profile.HeapAmount, kept float64) {
	t.Helper()
	got := byName(h)
	off, all, seen := 0.0, 0.0, 0
	for name, w := range want {
		if varies(name) {
			continue
		}
		all += w.Bytes
		g := got[name]
		if g != w {
			off += max(g.Bytes, w.Bytes) - min(g.Bytes, w.Bytes)
		}
		if strings.HasPrefix(name, "truth.") {
			seen++
			if g != w {
				t.Errorf("%s: %+v, the JVM counts %+v", name, g, w)
			}
		}
	}
	t.Logf("%.0f of %.0f bytes are counted otherwise", off, all)
	most := 0.0
	switch h.Collector {
	case "G1":
		most = all / 100
	case "ZGC", "Shenandoah":
		most = all / 10
	}
	if seen < 2 || off > most {
		t.Errorf("of %.0f bytes %.0f are counted otherwise", all, off)
	}
	for _, p := range h.Parts {
		if u := p.Unread; u.Sum() != u.Buffers || p.Seen != p.Used {
			t.Errorf("%+v", p)
		}
	}
	application, boot := "application", "boot"
	if jdk == 8 { // JDK 8 does not export a class's loader
		application, boot = "", ""
	}
	for _, c := range h.Classes {
		if c.Name == "truth.HeapTruth$Old" && (c.Loader != application || c.Objects != kept) {
			t.Errorf("%+v", c)
		}
		if c.Name == "byte[]" && c.Loader != boot {
			t.Errorf("%s is from %q", c.Name, c.Loader)
		}
	}
	if big := h.Largest; len(big) < 2 || big[0].Class != "byte[]" || big[0].Length != 3<<20 || big[1].Class != "short[]" {
		t.Errorf("the largest arrays: %+v", big)
	}
}

// hostileHeaps is the number of damaged heaps. Reading one may use mostMemory and mostReads calls. Reading an undamaged
// heap takes some thousand calls.
const (
	hostileHeaps = 30
	mostMemory   = 300 << 20
	mostReads    = 60_000
)

// TestHostileHeaps: headers, lengths, pointers to classes and the JVM's own tables are damaged. Such heaps are read in
// bounded time and memory. No part has more bytes than its size.
func TestHostileHeaps(t *testing.T) {
	var heaps []*captured.Recording
	for _, name := range []string{"amd64-serial-25", "amd64-g1-17", "arm64-zgc-17", "arm64-g1-25"} {
		heaps = append(heaps, loadHeap(t, name))
	}
	for seed := range uint64(hostileHeaps) {
		d := &damaged{Target: heaps[seed%4], rnd: rand.New(rand.NewPCG(seed, 1))}
		r, err := readerOf(d)
		if err != nil {
			t.Fatal(err)
		}
		areas, _, err := r.heap.Areas()
		if err != nil {
			t.Fatal(err)
		}
		d.damage(areas, int(seed/4*2+seed%2))
		h, err := r.Read(Options{All: seed%3 == 0, Seed: seed, Time: time.Minute})
		if d.reads > mostReads || d.memory > mostMemory {
			t.Errorf("heap %d took %d calls and %d bytes", seed, d.reads, d.memory)
		}
		if err != nil {
			continue
		}
		bytes := 0.0
		for _, c := range h.Classes {
			bytes += c.Bytes
		}
		if used := float64(h.Used()); bytes > used*1.01 && !h.Sampled() {
			t.Errorf("heap %d: classes have %.0f bytes of %.0f", seed, bytes, used)
		}
	}
}

// damaged is a heap with some false words.
type damaged struct {
	process.Target
	rnd    *rand.Rand
	words  map[uint64]uint64
	pool   []uint64 // if not empty: the contents of memory that was not recorded
	reads  int
	memory uint64
}

func (d *damaged) Read(addr uint64, p []byte) error {
	d.count()
	err := d.Target.Read(addr, p)
	if err != nil && len(d.pool) > 0 {
		lies.Invent(d.pool, addr, p)
		err = nil
	}
	lies.Tell(d.words, addr, p)
	return err
}

func (d *damaged) ReadMany(rs []process.Range) {
	for i := range rs {
		rs[i].OK = d.Read(rs[i].Addr, rs[i].Buf) == nil
	}
}

func (d *damaged) count() {
	if d.reads++; d.reads%1000 == 0 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		d.memory = max(d.memory, m.HeapAlloc)
	}
}

// damage makes false words of some kind: in headers, in the words after headers, and in words that lead to areas.
func (d *damaged) damage(areas []*vmstructs.HeapArea, kind int) {
	d.words = map[uint64]uint64{}
	some := func() uint64 {
		a := areas[d.rnd.IntN(len(areas))]
		return a.Start + d.rnd.Uint64N(a.Top-a.Start)&^7
	}
	wrong := []uint64{0, 3, 1, 1<<63 - 1, some(), some() | 3, 0x7fffffff_00000001, 0xffffffff_80000000, d.rnd.Uint64()}
	for range 200 << (kind % 5) {
		at := some()
		if kind%3 == 0 { // mostly the beginning of an object, because arrays of bytes are many
			at &^= 15
		}
		d.words[at] = wrong[d.rnd.IntN(len(wrong))]
	}
	if kind >= 8 { // memory that was not recorded is not zero
		d.pool = append(wrong, areas[0].Start, areas[0].Top)
	}
	if kind >= 11 { // words outside of the heap, near pointers to areas
		for _, a := range areas[:min(len(areas), 8)] {
			for range 20 {
				d.words[(a.Start-1<<16)+d.rnd.Uint64N(1<<16)&^7] = wrong[d.rnd.IntN(len(wrong))]
			}
		}
	}
}

// TestTallyIsSmall: a tally of very many classes, with long names and arrays of all lengths, keeps a bounded number.
func TestTallyIsSmall(t *testing.T) {
	tally := newTally()
	tally.part = vmstructs.OldPart
	tally.parts[vmstructs.OldPart].used = 1 << 40
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 120_000 {
		name := fmt.Sprintf("com.shop.Class%d", i)
		if i%8 == 0 {
			name += strings.Repeat("x", 4000)
		}
		class := &vmstructs.ObjectClass{Klass: uint64(8 * (i + 1)), Name: name}
		for bits := range 32 {
			tally.add(&vmstructs.Object{Addr: 8, Class: class, Bytes: 1 << 10, Length: 1 << bits})
		}
		if i%100 == 0 {
			tally.commit(256<<10, vmstructs.Unread{})
		}
	}
	tally.commit(256<<10, vmstructs.Unread{})
	var classes []*profile.HeapClass
	for _, r := range tally.rows {
		if r.name != "" {
			classes = append(classes, tally.class(r))
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > mostMemory/2 {
		t.Errorf("%d classes are %d bytes", len(classes), kept)
	}
	if n := len(classes); n > maxClasses || n < 1000 || classes[0].Name != others || classes[0].Objects < 1e6 {
		t.Errorf("%d classes, %+v", n, classes[0].HeapAmount)
	}
	runtime.KeepAlive(tally)
}

// TestAnotherClassAtThatAddress: a class at the former address of another class does not get that class's row, even if
// there is no room for a new row.
func TestAnotherClassAtThatAddress(t *testing.T) {
	tally := newTally()
	tally.rowOf(&vmstructs.ObjectClass{Klass: 8, Name: "a"})
	tally.text = maxText
	other := &vmstructs.ObjectClass{Klass: 8, Name: "b"}
	if i := tally.rowOf(other); i != 0 || other.Sum != 1 {
		t.Errorf("b is counted in row %d: %+v", i, tally.rows[i])
	}
}
