package captured

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goprof/arch"
	"goprof/arch/arm64"
	"goprof/process"
)

// arrayMemory is one piece of memory.
type arrayMemory struct {
	base uint64
	data []byte
}

func (m *arrayMemory) Read(addr uint64, p []byte) error {
	if addr < m.base || addr-m.base > uint64(len(m.data)) || uint64(len(m.data))-(addr-m.base) < uint64(len(p)) {
		return process.ErrFault
	}
	copy(p, m.data[addr-m.base:])
	return nil
}

func (m *arrayMemory) ReadMany(rs []process.Range) {
	for i := range rs {
		rs[i].OK = m.Read(rs[i].Addr, rs[i].Buf) == nil
	}
}

// fakeTarget is a process with one piece of memory and one image.
type fakeTarget struct {
	arrayMemory
	codes map[codeKey]process.Code
}

func (f *fakeTarget) CPU() *arch.CPU     { return arm64.CPU }
func (f *fakeTarget) Generation() uint64 { return 7 }

func (f *fakeTarget) Code(pc uint64, exact bool) (process.Code, bool) {
	c, ok := f.codes[codeKey{pc, exact}]
	return c, ok
}

func (f *fakeTarget) Global(image, symbol string) (uint64, error) {
	if image != "libjvm.so" {
		return 0, process.ErrNoImage
	}
	if symbol != "gHotSpotVMStructs" {
		return 0, process.ErrNoSymbol
	}
	return 0x1230, nil
}

func (f *fakeTarget) Image(name string) (process.Image, bool) {
	if name != "libjvm.so" {
		return process.Image{}, false
	}
	return process.Image{Name: name, Path: "/opt/jdk/lib/libjvm.so", Start: 0x1000, End: 0x9000, Bias: 0x800}, true
}

func newFakeTarget() *fakeTarget {
	row := &process.Row{
		CFA: process.Rule{Kind: process.RuleRegister, Reg: 31, Off: 16},
		Saved: []process.SavedReg{{Reg: 29, Rule: process.Rule{Kind: process.RuleOffset, Off: -16}},
			{Reg: 30, Rule: process.Rule{Kind: process.RuleExpr, Expr: []byte{0x77, 8}}}},
		RA: 30, Signal: true, SignedRA: true,
	}
	f := &fakeTarget{arrayMemory: arrayMemory{base: 0x10000, data: make([]byte, 8192)}}
	for i := range f.data {
		f.data[i] = byte(i * 7)
	}
	f.codes = map[codeKey]process.Code{
		{0x2000, true}:  {Image: "libjvm.so", Offset: 0x1800, Symbol: "JVM_Sleep", Row: row},
		{0x2000, false}: {Image: "libjvm.so", Offset: 0x1800, Symbol: "", Row: nil},
		{0x2004, true}:  {Image: "libjvm.so", Offset: 0x1804, Symbol: "JVM_Sleep", Row: row},
	}
	return f
}

func saveAndLoad(t *testing.T, r *Recorder, snaps []*process.Snapshot) *Recording {
	t.Helper()
	var b bytes.Buffer
	if err := r.Save(&b, snaps); err != nil {
		t.Fatal(err)
	}
	rec, err := Load(&b)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func TestRecordingAnswersAsTheTargetDid(t *testing.T) {
	f := newFakeTarget()
	r := NewRecorder(f)
	type answer struct {
		Code  process.Code
		OK    bool
		Addr  uint64
		Err   string
		Image process.Image
	}
	ask := func(g process.Target) []answer {
		var as []answer
		for _, pc := range []uint64{0x2000, 0x2004, 0x2008} {
			for _, exact := range []bool{true, false} {
				c, ok := g.Code(pc, exact)
				as = append(as, answer{Code: c, OK: ok})
			}
		}
		for _, k := range []globalKey{{"libjvm.so", "gHotSpotVMStructs"}, {"libjvm.so", "none"}, {"none.so", "x"}} {
			addr, err := g.Global(k.image, k.symbol)
			a := answer{Addr: addr}
			for _, kind := range []error{process.ErrNoImage, process.ErrNoSymbol} {
				if errors.Is(err, kind) {
					a.Err = kind.Error()
				}
			}
			as = append(as, a)
		}
		for _, name := range []string{"libjvm.so", "none.so"} {
			image, ok := g.Image(name)
			as = append(as, answer{Image: image, OK: ok})
		}
		return as
	}
	want := ask(r)
	if diff := cmp.Diff(ask(f), want); diff != "" {
		t.Errorf("the recorder answers otherwise:\n%s", diff)
	}
	rec := saveAndLoad(t, r, nil)
	if diff := cmp.Diff(want, ask(rec)); diff != "" {
		t.Errorf("the recording answers otherwise:\n%s", diff)
	}
	if rec.CPU() != arm64.CPU {
		t.Errorf("CPU %v", rec.CPU())
	}
}

func TestRecordingMemory(t *testing.T) {
	f := newFakeTarget()
	r := NewRecorder(f)
	want := make([]byte, 600)
	if err := r.Read(0x10010, want); err != nil {
		t.Fatal(err)
	}
	rs := []process.Range{{Addr: 0x10268, Buf: make([]byte, 8)}, {Addr: 0x10, Buf: make([]byte, 8)},
		{Addr: 0x11000, Buf: make([]byte, 24)}}
	r.ReadMany(rs)
	if !rs[0].OK || rs[1].OK || !rs[2].OK {
		t.Fatalf("ReadMany: %v", rs)
	}
	rec := saveAndLoad(t, r, nil)
	got := make([]byte, 608) // the two reads lie side by side and make one piece
	if err := rec.Read(0x10010, got); err != nil || !bytes.Equal(got, f.data[0x10:0x10+608]) {
		t.Errorf("Read: %v", err)
	}
	for _, c := range []struct {
		name string
		addr uint64
		n    int
		err  error
	}{
		{"the first byte", 0x10010, 1, nil},
		{"the last bytes", 0x11010, 8, nil},
		{"one byte too far", 0x11010, 9, process.ErrFault},
		{"one byte too early", 0x1000f, 2, process.ErrFault},
		{"never read", 0x10f00, 1, process.ErrFault},
		{"failed when it was recorded", 0x10, 8, process.ErrFault},
		{"the end of all memory", ^uint64(0), 8, process.ErrFault},
		{"nothing", 0, 0, nil},
	} {
		if err := rec.Read(c.addr, make([]byte, c.n)); !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.name, err, c.err)
		}
	}
	if n := testing.AllocsPerRun(100, func() {
		rec.Read(0x10010, got)
		rec.ReadMany(rs)
		rec.Code(0x2000,
			true)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestRecordingSteps changes memory between looks. It asks for the memory of each look, in any order.
func TestRecordingSteps(t *testing.T) {
	f := newFakeTarget()
	r := NewRecorder(f)
	rnd := rand.New(rand.NewPCG(1, 2))
	const steps = 50
	stack := make([]byte, 4096)
	var snaps []*process.Snapshot
	var want [][]byte
	for i := range steps {
		s := &process.Snapshot{TID: 100 + i%3, SP: 0x7000 + uint64(i%5)*64, Syscall: int64(i) - 1, Cut: i%2 == 0,
			PACMask: uint64(i) << 48, SideAddr: 0x9000 + uint64(i), Side: []byte{byte(i), 2, 3}, UnderSP: uint64(i) << 12}
		if i%2 == 0 {
			s.Under = []byte{0, byte(i + 1), 0, 0, 4, 0}
			s.Followed, s.RunsOn = []byte{byte(i), 2, 3}, true
			s.Continuation = process.Continuation{Entry: 0x7800, ID: uint64(i), Name: "v", Settled: i%4 == 0,
				BaseAddr: 0x77f0,
				Base:     []byte{byte(i), 1},
				Chunks:   []process.Chunk{{SP: 0x10010, Stack: []byte{1, byte(i)}}, {SP: 0x20010, Stack: []byte{2}}}}
		}
		for k := range s.Regs {
			s.Regs[k] = rnd.Uint64()
		}
		for range 20 {
			stack[rnd.IntN(len(stack))]++
		}
		s.Stack = append([]byte(nil), stack[i%5*64:len(stack)-i%7]...)
		snaps = append(snaps, s)
		r.Begin(s)
		for range 10 {
			binary.LittleEndian.PutUint64(f.data[rnd.IntN(1000):], rnd.Uint64())
		}
		b := make([]byte, 1024)
		if err := r.Read(f.base, b); err != nil {
			t.Fatal(err)
		}
		want = append(want, b)
	}
	// If Snapshot gets another field, this test reminds of it: the format must have it, too. What a Trail led to is in
	// Continuation. Recordings are of looks by ptrace, which tell all registers.
	notKept := []string{"Unknown", "Trail"}
	fields := reflect.ValueOf(*snaps[2])
	for i := range fields.NumField() {
		if name := fields.Type().Field(i).Name; fields.Field(i).IsZero() && !slices.Contains(notKept, name) {
			t.Errorf("field %s is not tested", name)
		}
	}
	stack[0]++ // the next snapshot reuses the stack's memory: Begin has copied it
	last := &process.Snapshot{TID: 100, SP: 0x7100, Stack: []byte{1, 2, 3}}
	rec := saveAndLoad(t, r, []*process.Snapshot{last})
	if diff := cmp.Diff(append(snaps, last), rec.Snapshots, cmp.AllowUnexported(process.Continuation{})); diff != "" {
		t.Errorf("snapshots differ:\n%s", diff)
	}
	got := make([]byte, 1024)
	check := func(i int) {
		rec.Step(i)
		if err := rec.Read(f.base, got); err != nil || !bytes.Equal(got, want[i]) {
			t.Errorf("memory of step %d is not what it was (%v)", i, err)
		}
	}
	for i := range steps {
		check(i)
	}
	for range 200 {
		check(rnd.IntN(steps))
	}
	if n := testing.AllocsPerRun(10, func() { rec.Step(40); rec.Step(3) }); n != 0 {
		t.Errorf("%v allocations in Step", n)
	}
}

func TestRecordingIsBounded(t *testing.T) {
	f := newFakeTarget()
	r := NewRecorder(f)
	r.Begin(&process.Snapshot{Stack: make([]byte, 100000)})
	if err := r.Read(f.base, make([]byte, 4096)); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.Save(&b, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := load(bytes.NewReader(b.Bytes()), 50000); !errors.Is(err, process.ErrTooLong) ||
		!errors.Is(err, ErrBadRecording) {
		t.Errorf("with a small budget: %v", err)
	}
	for n := range b.Len() {
		if _, err := Load(bytes.NewReader(b.Bytes()[:n])); !errors.Is(err, ErrBadRecording) {
			t.Fatalf("cut off at %d: %v", n, err)
		}
	}
}

// FuzzRecording changes the bytes inside the gzip: compressed, they would be hidden from the fuzzer.
func FuzzRecording(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		rec, err := readRecording(bytes.NewReader(b), 1<<20)
		if err != nil {
			return
		}
		var buf [64]byte
		first := slices.Clone(rec.all)
		for i := range rec.Snapshots {
			rec.Step(i)
			for _, c := range rec.chunks {
				if err := rec.Read(c.addr, buf[:min(len(c.data), len(buf))]); err != nil {
					t.Fatalf("%d bytes at %#x: %v", len(c.data), c.addr, err)
				}
			}
		}
		rec.Step(0)
		if !bytes.Equal(rec.all, first) {
			t.Fatal("the way back to the beginning leads to other memory")
		}
		for k := range rec.codes {
			rec.Code(k.pc, k.exact)
		}
	})
}
