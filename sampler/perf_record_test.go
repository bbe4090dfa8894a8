//go:build linux

package sampler

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"unsafe"

	"goprof/arch"
	"goprof/arch/amd64"
	"goprof/arch/arm64"
	"goprof/sampler/ptrace"
)

// ringWith is a ring of size bytes with these records, the first of them at position at.
func ringWith(size int, at uint64, records ...[]byte) (b ringBytes, head uint64) {
	b, head = make(ringBytes, size), at
	for _, r := range records {
		for i, c := range r {
			b[(head+uint64(i))&uint64(size-1)] = c
		}
		head += uint64(len(r))
	}
	return b, head
}

// perfRecordOf is one record as the kernel writes it: a header, and words.
func perfRecordOf(kind, misc int, body ...uint64) []byte {
	r := binary.LittleEndian.AppendUint32(nil, uint32(kind))
	r = binary.LittleEndian.AppendUint16(r, uint16(misc))
	r = binary.LittleEndian.AppendUint16(r, uint16(8+8*len(body)))
	for _, w := range body {
		r = binary.LittleEndian.AppendUint64(r, w)
	}
	return r
}

// sampleOf is a sample of amd64. Register i holds 100+i. The stack holds these words.
func sampleOf(misc int, stack []uint64, copied uint64) []byte {
	body := []uint64{7<<32 | 6, 12345, perfABI64}
	for i := range amd64.CPU.Perf.Len() {
		body = append(body, uint64(100+i))
	}
	body = append(body, uint64(8*len(stack)))
	body = append(body, stack...)
	if len(stack) > 0 {
		body = append(body, copied)
	}
	return perfRecordOf(perfSample, misc, body...)
}

// A sample reads the same at any place of the ring.
func TestPerfParse(t *testing.T) {
	stack := []uint64{0x1111, 0x2222, 0x3333, 0x4444}
	whole := sampleOf(perfMiscInKernel, stack, 24)
	for at := uint64(0); at < 512; at += 8 {
		b, head := ringWith(512, 1<<40+at, whole)
		rec, ok := b.next(1<<40+at, head)
		if !ok || rec.kind != perfSample || rec.end != head {
			t.Fatalf("at %d: %+v %v", at, rec, ok)
		}
		var s rawSample
		if !b.parse(rec, amd64.CPU, false, &s) {
			t.Fatalf("at %d it does not parse", at)
		}
		if s.pid != 6 || s.tid != 7 || s.when != 12345 || !s.inKernel || !s.hasRegs || s.unknown != 0 || s.stackLen != 24 ||
			s.asked != 32 {
			t.Errorf("at %d: %+v", at, s)
		}
		// rax is the first register, rip the ninth, r15 the last (perf_regs.h).
		if s.regs[0] != 100 || s.regs[amd64.CPU.PC] != 108 || s.regs[amd64.CPU.SP] != 107 || s.regs[15] != 116 {
			t.Errorf("at %d: registers %v", at, s.regs)
		}
		got := make([]byte, s.stackLen)
		b.copyTo(got, s.stackAt)
		if want := []byte{0x11, 0x11, 0, 0, 0, 0, 0, 0, 0x22, 0x22}; !bytes.HasPrefix(got, want) || got[16] != 0x33 {
			t.Errorf("at %d: stack %x", at, got)
		}
	}
}

// The kernel's frames stand between a sample's time and its registers, with marks among them.
func TestPerfParseChain(t *testing.T) {
	const mark = ^uint64(127) // PERF_CONTEXT_KERNEL is -128
	plain := sampleOf(0, []uint64{1, 2}, 16)
	withChain := func(n uint64, ips ...uint64) []byte {
		body := []uint64{7<<32 | 6, 12345, n}
		for at := 8 + 16; at < len(plain); at += 8 {
			ips = append(ips, binary.LittleEndian.Uint64(plain[at:]))
		}
		return perfRecordOf(perfSample, 0, append(body, ips...)...)
	}
	var s rawSample
	b, head := ringWith(512, 64, withChain(3, mark, 0xffffffff81000010, 0xffffffff81000020))
	rec, ok := b.next(64, head)
	if !ok || !b.parse(rec, amd64.CPU, true, &s) || s.stackLen != 16 || s.regs[0] != 100 ||
		!slices.Equal(s.kernel, []uint64{0xffffffff81000010, 0xffffffff81000020}) {
		t.Errorf("%v, %+v", ok, s)
	}
	b, head = ringWith(512, 64, withChain(1000, mark))
	if rec, ok = b.next(64, head); ok && b.parse(rec, amd64.CPU, true, &s) {
		t.Error("more frames than the record has parse")
	}
	b, head = ringWith(512, 64, withChain(0))
	if rec, ok = b.next(64, head); !ok || !b.parse(rec, amd64.CPU, true, &s) || len(s.kernel) != 0 {
		t.Errorf("without a frame: %+v", s)
	}
}

func TestPerfParseDamaged(t *testing.T) {
	good := sampleOf(0, []uint64{1, 2}, 16)
	for what, damage := range map[string]func([]byte){
		"more copied than there was room for": func(r []byte) { r[len(r)-8] = 17 },
		"a stack longer than the record":      func(r []byte) { r[len(r)-32] = 80 },
		"an odd length of stack":              func(r []byte) { r[len(r)-32] = 15 },
		"no room for the registers":           func(r []byte) { binary.LittleEndian.PutUint16(r[6:], 40) },
		"a header and nothing else":           func(r []byte) { binary.LittleEndian.PutUint16(r[6:], 8) },
	} {
		r := bytes.Clone(good)
		damage(r)
		b, head := ringWith(512, 64, r)
		rec, ok := b.next(64, head)
		if ok && b.parse(rec, amd64.CPU, false, new(rawSample)) {
			t.Errorf("%s: parses", what)
		}
	}
	for what, r := range map[string][]byte{
		"shorter than its header": {9, 0, 0, 0, 0, 0, 4, 0},
		"not of whole words":      {9, 0, 0, 0, 0, 0, 9, 0},
		"longer than what is":     {9, 0, 0, 0, 0, 0, 16, 0},
	} {
		b, head := ringWith(512, 0, r)
		if _, ok := b.next(0, head); ok {
			t.Errorf("%s: is a record", what)
		}
	}
	b, _ := ringWith(512, 0, good)
	if _, ok := b.next(0, 1024); ok {
		t.Error("more in the ring than it holds")
	}
}

// Older kernels leave out some registers of a thread that is in a system call.
func TestPerfUntold(t *testing.T) {
	r := sampleOf(0, nil, 0)
	reg := func(i int, v uint64) { binary.LittleEndian.PutUint64(r[8+24+8*i:], v) }
	for _, i := range []int{1, 13, 14, 15, 16} { // rbx, r12 to r15
		reg(i, ^uint64(0))
	}
	unknown := func() uint64 {
		b, head := ringWith(512, 0, r)
		rec, _ := b.next(0, head)
		var s rawSample
		if !b.parse(rec, amd64.CPU, false, &s) || s.stackLen != 0 {
			t.Fatalf("%+v", s)
		}
		return s.unknown
	}
	if got := unknown(); got != 1<<3|1<<12|1<<13|1<<14|1<<15 {
		t.Errorf("unknown %#x", got)
	}
	reg(13, 5)
	if got := unknown(); got != 0 {
		t.Errorf("r12 is known, and so are the others: %#x", got)
	}
}

func TestPerfLost(t *testing.T) {
	b, head := ringWith(256, 0, perfRecordOf(perfLost, 0, 1, 42), perfRecordOf(perfLostSamples, 0, 43),
		perfRecordOf(perfLost, 0, 1))
	var got []int64
	r := &perfRing{data: b, head: &head, tail: new(uint64)}
	to := recordFunc{lost: func(o ptrace.Outcome, n int64) {
		if got = append(got, n); o != ptrace.RingFull {
			t.Errorf("%v: %d", o, n)
		}
	}}
	if found := r.drain(to); !found || !slices.Equal(got, []int64{42, 43, 0}) {
		t.Error(found, got)
	}
	if r.drain(to) {
		t.Error("there is nothing any more")
	}
	if *r.tail != head {
		t.Errorf("%d of %d bytes were given back", *r.tail, head)
	}
}

// recordFunc is a recordTaker.
type recordFunc struct {
	each func(ringBytes, perfRecord)
	lost func(ptrace.Outcome, int64)
}

func (f recordFunc) record(b ringBytes, rec perfRecord) { f.each(b, rec) }
func (f recordFunc) lose(o ptrace.Outcome, n int64)     { f.lost(o, n) }

// Reading a ring allocates nothing.
func TestPerfReadAllocates(t *testing.T) {
	b, head := ringWith(4096, 0, sampleOf(0, []uint64{1, 2, 3}, 24), sampleOf(0, []uint64{4, 5, 6}, 24))
	r := &perfRing{data: b, head: &head, tail: new(uint64)}
	var s rawSample
	stack := make([]byte, 64)
	var to recordTaker = recordFunc{each: func(b ringBytes, rec perfRecord) {
		if b.parse(rec, amd64.CPU, false, &s) {
			b.copyTo(stack[:s.stackLen], s.stackAt)
		}
	}}
	if n := testing.AllocsPerRun(100, func() { *r.tail = 0; r.drain(to) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzPerfRing: whatever a ring holds, reading it ends, stays within the ring, and gives all of it back to the
// kernel.
func FuzzPerfRing(f *testing.F) {
	f.Add(sampleOf(1, []uint64{1, 2, 3}, 24), uint16(0))
	f.Add(append(perfRecordOf(perfLost, 0, 1, 42), sampleOf(2, nil, 0)...), uint16(480))
	f.Add(perfRecordOf(perfThrottle, 0, 1, 2, 3), uint16(8))
	f.Fuzz(func(t *testing.T, content []byte, from uint16) {
		const size = 512
		tail := uint64(from) &^ 7
		b, head := ringWith(size, tail, content[:min(len(content), size)])
		for _, cpu := range []*arch.CPU{amd64.CPU, arm64.CPU} {
			at := tail
			r := &perfRing{data: b, head: &head, tail: &at}
			n := 0
			r.drain(recordFunc{lost: func(_ ptrace.Outcome, lost int64) {
				if lost < 0 {
					t.Fatalf("%d lost", lost)
				}
			}, each: func(b ringBytes, rec perfRecord) {
				n++
				var s rawSample
				if rec.end <= rec.at-perfHeader || rec.end > head {
					t.Fatalf("record to %d of %d", rec.end, head)
				}
				var e eventRecord
				if b.parseEvent(rec, cpu, n%2 == 0, &e) && (e.raw+uint64(e.rawLen) > rec.end || len(e.kernel) > maxKernelFrames) {
					t.Fatalf("%+v in %+v", e, rec)
				}
				if b.parse(rec, cpu, true, &s) && len(s.kernel) > maxKernelFrames {
					t.Fatalf("%d frames of the kernel", len(s.kernel))
				}
				if b.parse(rec, cpu, false, &s) {
					if s.stackLen < 0 || s.stackLen > s.asked || s.stackAt+uint64(s.asked) > rec.end {
						t.Fatalf("%+v in %+v", s, rec)
					}
					b.copyTo(make([]byte, s.stackLen), s.stackAt)
				}
			}})
			if at != head || n > size/perfHeader {
				t.Fatalf("%d records, to %d of %d", n, at, head)
			}
		}
	})
}

// The first page of a ring is laid out as the kernel does it: heads at 1024 and 1032.
func TestMmapPage(t *testing.T) {
	needPerf(t)
	attr := holderAttr()
	r, err := openRing(onlineCPUs()[0], ringLeast, &attr)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	word := func(at int) uint64 { return *(*uint64)(unsafe.Pointer(&r.mem[at])) }
	// data_offset and data_size follow (since Linux 4.1).
	if off, size := word(1040), word(1048); off != uint64(len(r.mem)-len(r.data)) || size != ringLeast || *r.head != 0 ||
		*r.tail != 0 {
		t.Errorf("data at %d, %d bytes; head %d, tail %d", off, size, *r.head, *r.tail)
	}
}

// TestFitStack: fit makes copies smaller after many samples. At the first sample that needs more, it makes them
// as large as possible.
func TestFitStack(t *testing.T) {
	w := stackFit{stack: PerfStack}
	feed := func(n int, need uint64) {
		for range n {
			w.seen++
			w.deepest = max(w.deepest, need)
			if fit := w.fit(PerfStack); fit != w.stack {
				w.begin(fit)
			}
		}
	}
	for _, step := range []struct {
		n    int
		need uint64
		want int
	}{
		{stackWindow - 1, 3000, PerfStack},
		{1, 3000, stackLeast},
		{10 * stackWindow, stackLeast, stackLeast},
		{1, stackLeast + 8, PerfStack},
		{windowGrows*stackWindow - 1, 3000, PerfStack}, // one sample that needed more is enough
		{1, 3000, stackLeast},
		{1, stackLeast + 8, PerfStack},
		{windowGrows * stackWindow, 3000, PerfStack}, // longer than before
	} {
		if feed(step.n, step.need); w.stack != step.want {
			t.Fatalf("after %d samples of %d bytes: %d, not %d", step.n, step.need, w.stack, step.want)
		}
	}
}

// Samples of a first, short period count no more than others.
func TestPerfAccept(t *testing.T) {
	const interval = 1000
	for period := uint64(70); period <= interval; period += 31 {
		e := perfEvent{starting: true, period: period}
		n := 0
		for i := range 100 * interval / period {
			if e.accept(int64(i), interval) {
				n++
			}
		}
		if n < 99 || n > 101 {
			t.Errorf("%d samples in 100 intervals with a period of %d", n, period)
		}
	}
	// Periods are drawn at random. Their mean rate is the one that was asked for, and they differ.
	sum, least, most := 0.0, uint64(interval*1000), uint64(0)
	for i := range 1000 {
		p := randomPeriod(interval*1000, float64(i)/999)
		sum += 1 / float64(p)
		least, most = min(least, p), max(most, p)
	}
	if mean := sum / 1000 * interval * 1000; mean < 0.999 || mean > 1.001 || least > 910_000 || most < 1_110_000 {
		t.Errorf("mean rate %.4f, periods from %d to %d", mean, least, most)
	}
}
