//go:build linux

package vmstructs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unicode/utf8"

	"goprof/process"
	"goprof/testdata/captured"
	"goprof/testdata/jvmtest"
)

// recordedVirtual are recorded JVMs with parked virtual threads in containers of every kind. The recordings have the
// memory that a visit to all these threads reads. This command makes them:
//
//	GOPROF_SEEDS=1 GOPROF_JDKS=$(scripts/jdks.sh 21 27) go test ./vmstructs -run RecordVirtual
const recordedVirtual = "testdata/virtual/*.jvm"

func TestRecordVirtual(t *testing.T) {
	if os.Getenv("GOPROF_SEEDS") == "" {
		t.Skip("makes testdata; GOPROF_SEEDS=1 does")
	}
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		if jdk.Version < 21 {
			t.Skip("has no virtual threads")
		}
		jvm := jvmtest.Start(t, jdk, "truth.VirtualParked", "--add-exports",
			"java.base/jdk.internal.misc=ALL-UNNAMED", "-Xshare:off",
			"-XX:+UseSerialGC", "-Xmx32m", "--", "16")
		p, err := process.Open(jvm.PID)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		rec := captured.NewRecorder(p)
		if seen, err := visitVirtual(rec, 0); err != nil || seen < 16 {
			t.Fatalf("%d virtual threads, %v", seen, err)
		}
		file, err := os.Create(filepath.Join("testdata", "virtual", fmt.Sprintf("parked-jdk%d-%s.jvm", jdk.Version,
			p.CPU().Name)))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(rec.Save(file, []*process.Snapshot{{}}), file.Close()); err != nil {
			t.Fatal(err)
		}
	})
}

// visitVirtual opens a JVM and visits all its virtual threads. It lowers each bound of the search to 1/share, so that a
// circular search ends soon. A share of 0 changes no bound.
func visitVirtual(t process.Target, share int) (seen int, err error) {
	vm, err := Open(t)
	if err != nil {
		return 0, err
	}
	platform, err := vm.Threads()
	if err != nil {
		return 0, err
	}
	c := vm.NewContinuations()
	if c == nil {
		return 0, errors.New("no virtual threads")
	}
	if err := c.prepare(); err != nil {
		return 0, err
	}
	var wrong error
	s := search{c: c, seen: map[uint64]bool{}, shown: map[uint64]bool{}, visit: func(v *VirtualThread) {
		seen++
		if !utf8.ValidString(v.Name) || v.Err == nil && (v.ID == 0 || v.Stack == nil || len(v.Stack.Chunks) > maxChunks) {
			wrong = fmt.Errorf("%w: %+v", errWrong, v)
		}
	}}
	if share > 0 {
		s.nodes, s.slots, s.containers = maxSetNodes-maxSetNodes/share, maxSlots-maxSlots/share,
			maxContainers-maxContainers/share
		s.listed = maxKlasses - fewKlasses
	}
	err = s.run(platform)
	if s.census.Seen != seen || s.nodes > maxSetNodes+1 {
		wrong = fmt.Errorf("%w: census of %d, %d visited, %d nodes", errWrong, s.census.Seen, seen, s.nodes)
	}
	for _, most := range []int{3, 1 << 10} {
		err = errors.Join(err, drawVirtual(vm, &s, platform, most, share == 0))
	}
	return seen, errors.Join(err, wrong)
}

// drawVirtual draws random virtual threads. If the JVM's memory is unchanged, the numbers for which the visited threads
// stand add up to all threads.
func drawVirtual(vm *VM, s *search, platform []Thread, most int, honest bool) error {
	l := NewVirtualSampler(s.c)
	l.Blockers, l.Names, l.s.klasses = true, true, s.klasses
	if len(s.klasses) == 0 {
		return nil
	}
	if !honest {
		l.looked = mostSearches // a further search for classes is bounded by maxKlasses, not by fewKlasses
	}
	stood, visits, largest := 0.0, 0, 0.0
	lot, err := l.Draw(platform, most, func(v *VirtualThread, stands float64) {
		stood += stands
		visits++
		largest = max(largest, math.Abs(stands))
	})
	if honest && (err != nil || lot.Threads < 16 || lot.Left > 0 || math.Abs(stood-lot.Threads) > 1e-6 ||
		most > 16 && float64(visits) != lot.Threads) || visits > 4*most+64 || math.IsNaN(stood) ||
		max(largest, lot.Threads) > mostThreads {
		return fmt.Errorf("%w: %d visits for %v threads of %v: %v", errWrong, visits, stood, lot.Threads, err)
	}
	return nil
}

// collects is a JVM whose collector moves all objects at the first read of certain addresses.
type collects struct {
	process.Target
	at    func(addr uint64) bool // the addresses that move
	other uint64                 // an object of another class, which replaces them
	moved bool
	told  bool // the count of collections was read since then, and the objects are back
}

func (c *collects) Read(addr uint64, b []byte) error {
	if c.at(addr) && !c.told {
		c.moved = true
		return c.Target.Read(c.other, b)
	}
	return c.Target.Read(addr, b)
}

// countedHeap is the address of collects' count of collections, and of the flag that none stops the threads.
const countedHeap = 1 << 44

func (c *collects) ReadMany(rs []process.Range) {
	if rs[0].Addr>>12 != countedHeap>>12 {
		c.Target.ReadMany(rs)
		return
	}
	for i := range rs {
		clear(rs[i].Buf)
		rs[i].OK = true
	}
	if c.told = c.moved; c.moved {
		rs[0].Buf[0]++
	}
}

// TestDrawDuringCollection: a collection between the lists and the visits puts other objects at the addresses of
// threads. A draw does not mistake them for platform threads.
func TestDrawDuringCollection(t *testing.T) {
	for _, w := range loadVirtual(t) {
		h := &collects{Target: w.rec, at: func(uint64) bool { return false }}
		vm, err := Open(h)
		if err != nil {
			t.Fatal(err)
		}
		platform, err := vm.Threads()
		if err != nil {
			t.Fatal(err)
		}
		l := NewVirtualSampler(vm.NewContinuations())
		if l.s.klasses, err = l.s.findKlasses(classContainers, classTrackingRoot, classVirtual); err != nil {
			t.Fatal(err) // a recording has no other threads
		}
		objects := map[uint64]bool{}
		draw := func() (lot VirtualSample, stood float64) {
			lot, err := l.Draw(platform, 1<<10, func(v *VirtualThread, stands float64) {
				stood += stands
				objects[v.object] = true
			})
			if err != nil {
				t.Fatal(err)
			}
			return lot, stood
		}
		draw()
		l.s.c.vm.heapReads.at = countedHeap
		if h.other, err = l.s.static(classContainers, "CONTAINER_REGISTRY"); err != nil {
			t.Fatal(err)
		}
		h.at = func(addr uint64) bool { return objects[addr] }
		if lot, stood := draw(); !h.told || lot.Threads < 16 || math.Abs(stood+lot.Left*lot.Threads-lot.Threads) > 1e-6 {
			t.Errorf("%v threads, of which %v were stood for: %+v, %v", lot.Threads, stood, lot, h.told)
		}
	}
}

// TestDrawBoundsCounters: counters of sets may have any value.
func TestDrawBoundsCounters(t *testing.T) {
	w := loadVirtual(t)[0]
	h := &liar{Target: w.rec, lies: map[uint64]uint64{}, mayRead: mayVisit}
	vm, err := Open(h)
	if err != nil {
		t.Fatal(err)
	}
	s := &search{c: vm.NewContinuations(), seen: map[uint64]bool{}}
	if s.klasses, err = s.findKlasses(classContainers, classTrackingRoot, classVirtual); err != nil {
		t.Fatal(err)
	}
	s.sets = func(set uint64) {
		if m, err := s.field(set, "map"); err == nil {
			if o, err := s.read(m); err == nil {
				h.lies[m+o.class.fields["baseCount"]] = 1 << 62
			}
		}
	}
	s.lists(nil)
	if len(h.lies) < 2 {
		t.Fatal("no two sets", h.lies)
	}
	s.sets = nil
	if err := drawVirtual(vm, s, nil, 3, false); err != nil {
		t.Error(err)
	}
}

// virtualWorld is a recorded JVM, and the addresses that may have false words.
type virtualWorld struct {
	rec         *captured.Recording
	asked, pool []uint64
}

func loadVirtual(t testing.TB) (worlds []*virtualWorld) {
	t.Helper()
	files, err := filepath.Glob(recordedVirtual)
	if err != nil || len(files) == 0 {
		t.Fatalf("no %s: %v", recordedVirtual, err)
	}
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		rec, err := captured.Load(file)
		if err != nil {
			t.Fatal(name, err)
		}
		rec.Step(0)
		h := &liar{Target: rec, listens: true, mayRead: mayVisit}
		seen, err := visitVirtual(h, 0)
		if err != nil || seen < 16 {
			t.Fatalf("%s: %d virtual threads, %v", name, seen, err)
		}
		slices.Sort(h.asked)
		w := &virtualWorld{rec: rec, asked: slices.Compact(h.asked)}
		w.pool = []uint64{0, 1, ^uint64(0), 1 << 31, 1<<31 - 1, 1 << 63, 0x0101010101010101}
		var b [8]byte
		for _, at := range w.asked {
			if rec.Read(at, b[:]) == nil {
				if v := word(b[:]); v > 1<<20 {
					w.pool = append(w.pool, v, at)
				}
			}
		}
		worlds = append(worlds, w)
	}
	return worlds
}

// attack executes a plan and visits all virtual threads. Errors are accepted. An endless visit and wrong results are
// not.
func (w *virtualWorld) attack(plan []byte) (err error) {
	h := &liar{Target: w.rec, lies: map[uint64]uint64{}, pool: w.pool, mayRead: mayVisit}
	defer func() {
		if r := recover(); r != nil {
			much, ok := r.(tooMuch)
			if !ok {
				panic(r)
			}
			err = fmt.Errorf("%+v", much)
		}
	}()
	for ; len(plan) >= planStep; plan = plan[planStep:] {
		at := w.asked[uint64(binary.LittleEndian.Uint32(plan))>>8%uint64(len(w.asked))]
		b := uint64(binary.LittleEndian.Uint32(plan[4:]))
		v := (&hostileWorld{pool: w.pool}).value(plan[7], b)
		var old [8]byte
		w.rec.Read(at, old[:])
		switch plan[0] % 8 {
		case 0, 1: // one word
			h.lies[at] = v
		case 2, 3: // half a word: a narrow reference, a length
			binary.LittleEndian.PutUint32(old[4*(b&1):], uint32(v))
			h.lies[at] = word(old[:])
		case 4, 5: // the word of another address, which makes circles
			other := w.asked[b%uint64(len(w.asked))]
			w.rec.Read(other, old[:])
			h.lies[at] = word(old[:])
		case 6:
			old[b%8] = byte(b >> 8)
			h.lies[at] = word(old[:])
		case 7:
			h.invents, h.fickle = b&1 == 0, int(b>>1%8)
		}
	}
	if _, err := visitVirtual(h, 1<<12); errors.Is(err, errWrong) {
		return err
	}
	return nil
}

const (
	// fewKlasses is several times the number that the recorded JVMs have.
	fewKlasses = 1 << 13
	// mayVisit bounds the number of reads of a visit with fewKlasses.
	mayVisit = 1 << 20
)

// errWrong: the result would be wrong for any contents of memory.
var errWrong = errors.New("a wrong answer")

// FuzzHostileVirtual visits the virtual threads of JVMs with false words about these threads.
func FuzzHostileVirtual(f *testing.F) {
	worlds := loadVirtual(f)
	r := rand.New(rand.NewPCG(5, 6))
	for range 32 {
		f.Add(uint8(r.Uint32()), randomPlan(r))
	}
	f.Fuzz(func(t *testing.T, world uint8, plan []byte) {
		if len(plan) > 64*planStep {
			return
		}
		if err := worlds[int(world)%len(worlds)].attack(plan); err != nil {
			t.Fatal(err)
		}
	})
}

// TestHostileVirtual is the short form of the fuzzer: the false words are the same each time.
func TestHostileVirtual(t *testing.T) {
	n := 300
	if testing.Short() {
		n = 30
	}
	for k, w := range loadVirtual(t) {
		r := rand.New(rand.NewPCG(uint64(k), 11))
		for i := range n {
			plan := randomPlan(r)
			if err := w.attack(plan); err != nil {
				t.Fatalf("attack %d, %x: %v", i, plan, err)
			}
		}
	}
}
