//go:build linux

package ring

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"unsafe"

	"goprof/arch"
	"goprof/arch/amd64"
	"goprof/arch/arm64"
	"goprof/sampler/cpuset"
	"goprof/sampler/ptrace"
	"goprof/testdata/sampletest"
)

// ringWith is a ring of size bytes with these records, the first of them at position at.
func ringWith(size int, at uint64, records ...[]byte) (b Bytes, head uint64) {
	b, head = make(Bytes, size), at
	for _, r := range records {
		for i, c := range r {
			b[(head+uint64(i))&uint64(size-1)] = c
		}
		head += uint64(len(r))
	}
	return b, head
}

// A sample reads the same at any place of the ring.
func TestPerfParse(t *testing.T) {
	stack := []uint64{0x1111, 0x2222, 0x3333, 0x4444}
	whole := sampletest.SampleOf(perfMiscInKernel, stack, 24)
	for at := uint64(0); at < 512; at += 8 {
		b, head := ringWith(512, 1<<40+at, whole)
		rec, ok := b.Next(1<<40+at, head)
		if !ok || rec.Kind != KindSample || rec.End != head {
			t.Fatalf("at %d: %+v %v", at, rec, ok)
		}
		var s Sample
		if !b.Parse(rec, amd64.CPU, false, &s) {
			t.Fatalf("at %d it does not parse", at)
		}
		if s.PID != 6 || s.TID != 7 || s.When != 12345 || !s.inKernel || !s.HasRegs || s.Unknown != 0 || s.stackLen != 24 ||
			s.asked != 32 {
			t.Errorf("at %d: %+v", at, s)
		}
		// rax is the first register, rip the ninth, r15 the last (perf_regs.h).
		if s.Regs[0] != 100 || s.Regs[amd64.CPU.PC] != 108 || s.Regs[amd64.CPU.SP] != 107 || s.Regs[15] != 116 {
			t.Errorf("at %d: registers %v", at, s.Regs)
		}
		got := make([]byte, s.stackLen)
		b.CopyTo(got, s.StackAt)
		if want := []byte{0x11, 0x11, 0, 0, 0, 0, 0, 0, 0x22, 0x22}; !bytes.HasPrefix(got, want) || got[16] != 0x33 {
			t.Errorf("at %d: stack %x", at, got)
		}
	}
}

// The kernel's frames stand between a sample's time and its registers, with marks among them.
func TestPerfParseChain(t *testing.T) {
	const mark = ^uint64(127) // PERF_CONTEXT_KERNEL is -128
	plain := sampletest.SampleOf(0, []uint64{1, 2}, 16)
	withChain := func(n uint64, ips ...uint64) []byte {
		body := []uint64{7<<32 | 6, 12345, n}
		for at := 8 + 16; at < len(plain); at += 8 {
			ips = append(ips, binary.LittleEndian.Uint64(plain[at:]))
		}
		return sampletest.RecordOf(KindSample, 0, append(body, ips...)...)
	}
	var s Sample
	b, head := ringWith(512, 64, withChain(3, mark, 0xffffffff81000010, 0xffffffff81000020))
	rec, ok := b.Next(64, head)
	if !ok || !b.Parse(rec, amd64.CPU, true, &s) || s.stackLen != 16 || s.Regs[0] != 100 ||
		!slices.Equal(s.Kernel, []uint64{0xffffffff81000010, 0xffffffff81000020}) {
		t.Errorf("%v, %+v", ok, s)
	}
	b, head = ringWith(512, 64, withChain(1000, mark))
	if rec, ok = b.Next(64, head); ok && b.Parse(rec, amd64.CPU, true, &s) {
		t.Error("more frames than the record has parse")
	}
	b, head = ringWith(512, 64, withChain(0))
	if rec, ok = b.Next(64, head); !ok || !b.Parse(rec, amd64.CPU, true, &s) || len(s.Kernel) != 0 {
		t.Errorf("without a frame: %+v", s)
	}
}

func TestPerfParseDamaged(t *testing.T) {
	good := sampletest.SampleOf(0, []uint64{1, 2}, 16)
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
		rec, ok := b.Next(64, head)
		if ok && b.Parse(rec, amd64.CPU, false, new(Sample)) {
			t.Errorf("%s: parses", what)
		}
	}
	for what, r := range map[string][]byte{
		"shorter than its header": {9, 0, 0, 0, 0, 0, 4, 0},
		"not of whole words":      {9, 0, 0, 0, 0, 0, 9, 0},
		"longer than what is":     {9, 0, 0, 0, 0, 0, 16, 0},
	} {
		b, head := ringWith(512, 0, r)
		if _, ok := b.Next(0, head); ok {
			t.Errorf("%s: is a record", what)
		}
	}
	b, _ := ringWith(512, 0, good)
	if _, ok := b.Next(0, 1024); ok {
		t.Error("more in the ring than it holds")
	}
}

// Older kernels leave out some registers of a thread that is in a system call.
func TestPerfUnreported(t *testing.T) {
	r := sampletest.SampleOf(0, nil, 0)
	reg := func(i int, v uint64) { binary.LittleEndian.PutUint64(r[8+24+8*i:], v) }
	for _, i := range []int{1, 13, 14, 15, 16} { // rbx, r12 to r15
		reg(i, ^uint64(0))
	}
	unknown := func() uint64 {
		b, head := ringWith(512, 0, r)
		rec, _ := b.Next(0, head)
		var s Sample
		if !b.Parse(rec, amd64.CPU, false, &s) || s.stackLen != 0 {
			t.Fatalf("%+v", s)
		}
		return s.Unknown
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
	b, head := ringWith(256, 0, sampletest.RecordOf(perfLost, 0, 1, 42), sampletest.RecordOf(perfLostSamples, 0, 43),
		sampletest.RecordOf(perfLost, 0, 1))
	var got []int64
	r := &Ring{Data: b, Head: &head, Tail: new(uint64)}
	to := recordFunc{lost: func(o ptrace.Outcome, n int64) {
		if got = append(got, n); o != ptrace.RingFull {
			t.Errorf("%v: %d", o, n)
		}
	}}
	if r.Drain(to); !slices.Equal(got, []int64{42, 43, 0}) {
		t.Error(got)
	}
	if r.Drain(to); len(got) != 3 {
		t.Error("there is nothing any more")
	}
	if *r.Tail != head {
		t.Errorf("%d of %d bytes were given back", *r.Tail, head)
	}
}

// recordFunc is a Taker.
type recordFunc struct {
	each func(Bytes, Record)
	lost func(ptrace.Outcome, int64)
}

func (f recordFunc) Record(b Bytes, rec Record)     { f.each(b, rec) }
func (f recordFunc) Lose(o ptrace.Outcome, n int64) { f.lost(o, n) }

// Reading a ring allocates nothing.
func TestPerfReadAllocates(t *testing.T) {
	b, head := ringWith(4096, 0, sampletest.SampleOf(0, []uint64{1, 2, 3}, 24), sampletest.SampleOf(0, []uint64{4, 5,
		6}, 24))
	r := &Ring{Data: b, Head: &head, Tail: new(uint64)}
	var s Sample
	stack := make([]byte, 64)
	var to Taker = recordFunc{each: func(b Bytes, rec Record) {
		if b.Parse(rec, amd64.CPU, false, &s) {
			b.CopyTo(stack[:s.stackLen], s.StackAt)
		}
	}}
	if n := testing.AllocsPerRun(100, func() { *r.Tail = 0; r.Drain(to) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzPerfRing: whatever a ring holds, reading it ends, stays within the ring, and gives all of it back to the
// kernel.
func FuzzPerfRing(f *testing.F) {
	f.Add(sampletest.SampleOf(1, []uint64{1, 2, 3}, 24), uint16(0))
	f.Add(append(sampletest.RecordOf(perfLost, 0, 1, 42), sampletest.SampleOf(2, nil, 0)...), uint16(480))
	f.Add(sampletest.RecordOf(KindThrottle, 0, 1, 2, 3), uint16(8))
	f.Fuzz(func(t *testing.T, content []byte, from uint16) {
		const size = 512
		tail := uint64(from) &^ 7
		b, head := ringWith(size, tail, content[:min(len(content), size)])
		for _, cpu := range []*arch.CPU{amd64.CPU, arm64.CPU} {
			at := tail
			r := &Ring{Data: b, Head: &head, Tail: &at}
			n := 0
			r.Drain(recordFunc{lost: func(_ ptrace.Outcome, lost int64) {
				if lost < 0 {
					t.Fatalf("%d lost", lost)
				}
			}, each: func(b Bytes, rec Record) {
				n++
				var s Sample
				if rec.End <= rec.At-HeaderSize || rec.End > head {
					t.Fatalf("record to %d of %d", rec.End, head)
				}
				if b.Parse(rec, cpu, true, &s) && len(s.Kernel) > maxKernelFrames {
					t.Fatalf("%d frames of the kernel", len(s.Kernel))
				}
				if b.Parse(rec, cpu, false, &s) {
					if s.stackLen < 0 || s.stackLen > s.asked || s.StackAt+uint64(s.asked) > rec.End {
						t.Fatalf("%+v in %+v", s, rec)
					}
					b.CopyTo(make([]byte, s.stackLen), s.StackAt)
				}
			}})
			if at != head || n > size/HeaderSize {
				t.Fatalf("%d records, to %d of %d", n, at, head)
			}
		}
	})
}

// The first page of a ring is laid out as the kernel does it: heads at 1024 and 1032.
func TestMmapPage(t *testing.T) {
	if _, err := Try(0); err != nil {
		t.Skip(err)
	}
	attr := holderAttr()
	r, err := openOne(cpuset.Online()[0], Least, &attr)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	word := func(at int) uint64 { return *(*uint64)(unsafe.Pointer(&r.mem[at])) }
	// data_offset and data_size follow (since Linux 4.1).
	if off, size := word(1040), word(1048); off != uint64(len(r.mem)-len(r.Data)) || size != Least || *r.Head != 0 ||
		*r.Tail != 0 {
		t.Errorf("data at %d, %d bytes; head %d, tail %d", off, size, *r.Head, *r.Tail)
	}
}
