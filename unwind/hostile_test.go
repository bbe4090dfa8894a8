package unwind

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unicode/utf8"

	"goprof/arch"
	"goprof/process"
	"goprof/profile"
	"goprof/testdata/captured"
	"goprof/testdata/lies"
	"goprof/vmstructs"
)

// Bounds for one walk of a hostile process. The recorded walks of javac stay below 2,100 reads and 4 MB. A walk needs
// nearly all of that when it meets a method for the first time.
const (
	maxHostileReads = 1 << 17
	maxHostileBytes = 256 << 20
)

// hostile is a recorded process that returns false values for some words of its memory. If invents is set, memory that
// was not recorded also has false values.
type hostile struct {
	*captured.Recording
	lies    map[uint64]uint64 // by address, a multiple of 8
	fickle  int               // not 0: only some reads return false values, so that no two reads agree
	invents bool
	pool    []uint64 // the invented values: words with a meaning
	asked   []uint64 // addresses that were read, if it records them
	listens bool

	reads int
	bytes uint64
}

func (h *hostile) Read(addr uint64, p []byte) error {
	h.reads++
	return h.read(addr, p)
}

func (h *hostile) read(addr uint64, p []byte) error {
	h.bytes += uint64(len(p))
	if h.reads > maxHostileReads || h.bytes > maxHostileBytes {
		panic(tooMuch{h.reads, h.bytes})
	}
	if h.listens {
		for a := addr &^ 7; a < addr+uint64(min(len(p), 512)); a += 8 {
			h.asked = append(h.asked, a)
		}
	}
	if err := h.Recording.Read(addr, p); err != nil {
		if !h.invents || addr < 4096 || addr+uint64(len(p)) < addr {
			return err
		}
		lies.Invent(h.pool, addr, p)
	}
	if h.fickle != 0 && h.reads%(1+h.fickle) == 0 {
		return nil
	}
	lies.Tell(h.lies, addr, p)
	return nil
}

// tooMuch is the panic of Read if a walk exceeds its bounds. Without it, such a walk would take long.
type tooMuch struct {
	reads int
	bytes uint64
}

func (h *hostile) ReadMany(rs []process.Range) {
	h.reads++
	for i := range rs {
		rs[i].OK = h.read(rs[i].Addr, rs[i].Buf) == nil
	}
}

// hostileFile is one recording, with the material for plans.
type hostileFile struct {
	rec   *captured.Recording
	pool  []uint64
	asked []uint64 // the addresses that are read to open the VM and to walk
}

func loadHostile(t testing.TB) []*hostileFile {
	t.Helper()
	names, _ := filepath.Glob("testdata/walks/*.walks")
	if other := os.Getenv("GOPROF_WALKS"); other != "" { // as in BenchmarkWalk
		names, _ = filepath.Glob(other)
	}
	if len(names) == 0 {
		t.Fatal("no recorded walks")
	}
	var files []*hostileFile
	for _, name := range names {
		rec, _ := recorded(t, name)
		f := &hostileFile{rec: rec}
		h := &hostile{Recording: rec, listens: true}
		rec.Step(0)
		vm, err := vmstructs.Open(h)
		if err != nil {
			t.Fatal(err)
		}
		w := New(h, vm)
		var stack profile.Stack
		for i := range min(len(rec.Snapshots), 40) {
			rec.Step(i)
			w.Walk(rec.Snapshots[i], &stack)
			h.reads, h.bytes = 0, 0
		}
		slices.Sort(h.asked)
		f.asked = slices.Compact(h.asked)
		f.pool = wordsOf(f)
		files = append(files, f)
	}
	return files
}

// wordsOf collects words that look like addresses: from stacks, and from memory that walks read.
func wordsOf(f *hostileFile) []uint64 {
	pool := []uint64{0, 1, 8, ^uint64(0), 1 << 31, 1<<31 - 1, 1 << 32, 1 << 63, 0xffff, 0x7fffffff_7fffffff}
	for i, snap := range f.rec.Snapshots {
		if i%16 != 0 {
			continue
		}
		for at := 0; at+8 <= min(len(snap.Stack), 4096); at += 8 {
			if v := binary.LittleEndian.Uint64(snap.Stack[at:]); v > 1<<20 {
				pool = append(pool, v)
			}
		}
	}
	var b [8]byte
	for i := 0; i < len(f.asked); i += 7 {
		if f.rec.Read(f.asked[i], b[:]) == nil {
			if v := binary.LittleEndian.Uint64(b[:]); v > 1<<20 {
				pool = append(pool, v, f.asked[i])
			}
		}
	}
	return pool
}

// A plan is a sequence of steps of 8 bytes. A step has what to do, how to do it, and two places.
const planStep = 8

// apply changes the process and one snapshot of it according to a plan.
func (f *hostileFile) apply(plan []byte, h *hostile, s *process.Snapshot, w *Walker) {
	for ; len(plan) >= planStep; plan = plan[planStep:] {
		a, b := uint64(binary.LittleEndian.Uint16(plan[2:])), uint64(binary.LittleEndian.Uint32(plan[4:]))
		v := f.value(plan[1], b, s)
		switch plan[0] % 10 {
		case 0, 1:
			s.Regs[a%arch.MaxRegs] = v
		case 2, 3: // most often near the top
			if n := uint64(len(s.Stack) / 8); n > 0 {
				if a&1 == 0 {
					n = min(n, 64)
				}
				binary.LittleEndian.PutUint64(s.Stack[a>>1%n*8:], v)
			}
		case 4, 5: // some words in a row
			at := f.asked[(a<<16|b>>16)%uint64(len(f.asked))]
			for k := range uint64(1 + plan[0]>>5) {
				h.lies[at+8*k] = v + k*(a&8)
			}
		case 6: // one field of a word: a length, an index, a flag
			at := f.asked[(a<<16|b>>16)%uint64(len(f.asked))]
			var old [8]byte
			h.Recording.Read(at, old[:])
			old[b%8] = byte(v)
			old[(b+uint64(plan[1]))%8] = byte(v >> 8)
			h.lies[at] = binary.LittleEndian.Uint64(old[:])
		case 7:
			if n := uint64(len(s.Side)); n >= 8 {
				binary.LittleEndian.PutUint64(s.Side[a%(n/8)*8:], v)
			}
		case 8:
			switch a % 6 {
			case 0:
				s.Stack = s.Stack[:b%uint64(len(s.Stack)+1)]
			case 1:
				s.SP = v
			case 2:
				s.SideAddr = v
			case 3:
				s.Cut = !s.Cut
			case 4:
				s.Side = s.Side[:b%uint64(len(s.Side)+1)]
			case 5:
				s.PACMask = v
			}
		case 9:
			switch a % 4 {
			case 0:
				h.invents = true
			case 1:
				w.MaxDepth = int(b % 64)
			case 3:
				h.fickle = int(b % 8)
			case 2: // one word fills the whole stack
				for at := 0; at+8 <= len(s.Stack); at += 8 {
					binary.LittleEndian.PutUint64(s.Stack[at:], v+uint64(at)&-(a>>2&1))
				}
			}
		}
	}
}

// value returns a word: one of the stack itself, another word with a meaning, or a large one.
func (f *hostileFile) value(how byte, b uint64, s *process.Snapshot) uint64 {
	switch how % 8 {
	case 0:
		return s.SP + b%uint64(len(s.Stack)+1)&^7
	case 1:
		return s.SP + 8*(b%32)
	case 2, 3:
		return f.pool[b%uint64(len(f.pool))]
	case 4:
		return f.pool[b>>8%uint64(len(f.pool))] + uint64(int64(int8(b)))
	case 5:
		return 1<<(b%64) - b>>8%3
	case 6:
		return s.SP - b%4096
	}
	return b | b<<29
}

func (f *hostileFile) attack(at uint16, how uint8, plan []byte) (err error) {
	i := int(at) % len(f.rec.Snapshots)
	f.rec.Step(i)
	snap := *f.rec.Snapshots[i]
	snap.Stack, snap.Side = slices.Clone(snap.Stack), slices.Clone(snap.Side)
	h := &hostile{Recording: f.rec, lies: map[uint64]uint64{}, pool: f.pool}
	defer func() {
		if r := recover(); r != nil {
			if much, ok := r.(tooMuch); ok {
				err = fmt.Errorf("%d reads, %d bytes", much.reads, much.bytes)
				return
			}
			panic(r)
		}
	}()
	early := how&1 != 0 // false values from the beginning, for the VM, too
	w := New(h, nil)    // New needs MaxDepth
	if early {
		f.apply(plan, h, &snap, w)
	}
	vm, err := vmstructs.Open(h)
	if err != nil {
		return nil
	}
	depth := w.MaxDepth
	w = New(h, vm)
	var stack profile.Stack
	if early {
		w.MaxDepth = depth
	} else {
		w.Walk(&snap, &stack) // fills the caches
		f.apply(plan, h, &snap, w)
	}
	for range 2 { // the second walk uses everything that the first one has cached
		h.reads, h.bytes = 0, 0
		if how&2 == 0 {
			w.Walk(&snap, &stack)
		} else {
			w.WalkUnstopped(&snap, &stack)
		}
		if err := checkHostile(&stack, w.MaxDepth); err != nil {
			return err
		}
	}
	return nil
}

// checkHostile returns an error if the stack of a hostile process is impossible.
func checkHostile(stack *profile.Stack, depth int) error {
	if len(stack.Frames) > depth {
		return fmt.Errorf("%d frames of at most %d", len(stack.Frames), depth)
	}
	if r := stack.Truncated; r >= profile.NumReasons || r.Lost() {
		return fmt.Errorf("truncated by %d (%v)", r, r)
	}
	for i := range stack.Frames {
		f := &stack.Frames[i]
		if f.Func == nil || f.Func.Name == "" || !utf8.ValidString(f.Func.Name) || f.Kind > profile.Gap || f.Line < 0 ||
			f.BCI < -1 {
			return fmt.Errorf("frame %d: %+v", i, f)
		}
		if i > 0 && f.SP < stack.Frames[i-1].SP {
			return fmt.Errorf("frame %d at %#x, its caller at %#x", i-1, stack.Frames[i-1].SP, f.SP)
		}
	}
	return nil
}

// FuzzHostileWalk walks processes in which any memory may be false.
func FuzzHostileWalk(f *testing.F) {
	files := loadHostile(f)
	r := rand.New(rand.NewPCG(1, 2))
	for range 32 {
		f.Add(uint8(r.Uint32()), uint16(r.Uint32()), uint8(r.Uint32()), randomPlan(r))
	}
	f.Fuzz(func(t *testing.T, file uint8, at uint16, how uint8, plan []byte) {
		if len(plan) > 64*planStep {
			return
		}
		if err := files[int(file)%len(files)].attack(at, how, plan); err != nil {
			t.Fatal(err)
		}
	})
}

func randomPlan(r *rand.Rand) []byte {
	plan := make([]byte, planStep*(1+r.IntN(12)))
	for i := range plan {
		plan[i] = byte(r.Uint32())
	}
	return plan
}

// TestHostileWalks is the short form of the fuzzer: the false values are the same each time.
func TestHostileWalks(t *testing.T) {
	n := 3000
	if testing.Short() {
		n = 500
	}
	for k, f := range loadHostile(t) {
		r := rand.New(rand.NewPCG(uint64(k), 7))
		for i := range n {
			at, how, plan := uint16(r.Uint32()), uint8(r.Uint32()), randomPlan(r)
			if err := f.attack(at, how, plan); err != nil {
				t.Fatalf("attack %d: snapshot %d, how %d, plan %x: %v", i, at, how, plan, err)
			}
		}
	}
}

// TestWalksHoldLittle: a walk ends if it reads more than a real walk can need. The caches are emptied when all walks
// together have read too much.
func TestWalksHoldLittle(t *testing.T) {
	files := recordings(t, "walks")
	if len(files) == 0 {
		t.Fatal("no recorded walks")
	}
	rec, w := recorded(t, files[0])
	var stack profile.Stack
	rec.Step(0)
	w.mayHold = 4096
	w.Walk(rec.Snapshots[0], &stack)
	if stack.Truncated != profile.UnreadableMemory || len(stack.Frames) == 0 {
		t.Errorf("with little to hold: %v after %d frames", stack.Truncated, len(stack.Frames))
	}
	w.mayHold = maxHeldByWalk
	w.Walk(rec.Snapshots[0], &stack)
	if stack.Truncated != profile.Whole {
		t.Errorf("with enough: %v", stack.Truncated)
	}
	kept := len(w.sites) + len(w.methods)
	w.heldFrom -= maxHeld
	w.Walk(&process.Snapshot{}, &stack)
	if now := len(w.sites) + len(w.methods); kept == 0 || now != 0 {
		t.Errorf("%d entries, then %d", kept, now)
	}
}
