//go:build linux

package perf

import (
	"encoding/binary"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"goprof/arch/amd64"
	"goprof/process"
	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
	"goprof/sampler/ring"
	"goprof/testdata/ctest"
	"goprof/testdata/sampletest"
)

// The code of a checker's tests. SampleOf's registers and stacks lie below it.
const (
	codeBegin = 0x10000
	codeEnd   = 0x20000
)

// checkerRing is a ring that a test writes, and a checker that no OS thread runs.
type checkerRing struct {
	s          *checker
	bytes      ring.Bytes
	head, tail uint64
}

func newCheckerRing(t *testing.T, chain bool) *checkerRing {
	t.Helper()
	r := &checkerRing{s: new(checker), bytes: make(ring.Bytes, 4096)}
	d := &checkerThread{s: r.s, wakeFD: -1, end: -1}
	kernels := &ring.Ring{Head: &r.head, Tail: &r.tail, Data: r.bytes}
	d.setUp([]*ring.Ring{kernels}, amd64.CPU, chain)
	d.watch(6, sampler.NewQueue(1024), func(k *process.KnownCode) { k.Span(codeBegin, codeEnd, 0, 0) })
	d.know(7, &ptrace.Hint{})
	d.know(9, &ptrace.Hint{Skip: true})
	return r
}

// write writes a record, as the kernel does.
func (r *checkerRing) write(record []byte) {
	for i, c := range record {
		r.bytes[(r.head+uint64(i))%uint64(len(r.bytes))] = c
	}
	r.head += uint64(len(record))
}

// calls makes the checker look, and reports whether the checker calls the sampling thread.
func (r *checkerRing) calls() bool {
	r.s.calls.Store(0)
	r.s.lookIntoRings()
	return r.s.calls.Load() != 0
}

// withWord returns a sample with one word replaced: 0 is pid and tid, 3 the first register.
func withWord(sample []byte, at int, word uint64) []byte {
	binary.LittleEndian.PutUint64(sample[8+8*at:], word)
	return sample
}

func TestCheckerCalls(t *testing.T) {
	plain := func() []byte { return sampletest.SampleOf(0, []uint64{1, 2, 3, 4}, 32) }
	pc := 0
	for i, reg := range amd64.CPU.Perf.Order {
		if int(reg) == int(amd64.CPU.PC) {
			pc = 3 + i
		}
	}
	stack := 3 + amd64.CPU.Perf.Len() + 1
	for name, c := range map[string]struct {
		record []byte
		want   bool
	}{
		"nothing new":          {plain(), false},
		"another process":      {withWord(plain(), 0, 7<<32|5), true},
		"no process":           {withWord(plain(), 0, 7<<32), true},
		"a thread not wanted":  {withWord(withWord(plain(), 0, 9<<32|6), pc, codeBegin+5), false},
		"another thread":       {withWord(plain(), 0, 8<<32|6), true},
		"new code at the pc":   {withWord(plain(), pc, codeBegin+5), true},
		"new code below":       {withWord(plain(), stack+3, codeEnd-1), true},
		"behind the stack":     {withWord(plain(), stack+4, codeBegin+5), false},
		"no registers":         {withWord(plain(), 2, 0), false},
		"another record":       {sampletest.RecordOf(ring.KindThrottle, 0, 1, 2, 3), false},
		"not copied":           {withWord(sampletest.SampleOf(0, []uint64{1, 2, 3, 4}, 24), stack+3, codeBegin+5), false},
		"a stack without end":  {withWord(plain(), stack-1, 1<<40), true},
		"a record of no size":  {make([]byte, 16), true},
		"a record that is cut": {plain()[:64], true},
		"a sample of nothing":  {sampletest.RecordOf(ring.KindSample, 0), true},
	} {
		t.Run(name, func(t *testing.T) {
			for at := uint64(0); at < 4096; at += 512 {
				r := newCheckerRing(t, false)
				r.head, r.tail, r.s.rings[0].seen = at, at, at
				r.write(c.record)
				if got := r.calls(); got != c.want {
					t.Fatalf("at %d: it calls: %v", at, got)
				}
				if r.calls() {
					t.Fatalf("at %d: it calls again for the same", at)
				}
			}
		})
	}
}

// The checker does not call because of known code, or of what lies above the thread's stack.
func TestCheckerKnows(t *testing.T) {
	stack := 3 + amd64.CPU.Perf.Len() + 1
	record := func() []byte {
		return withWord(sampletest.SampleOf(0, []uint64{1, 2, 3, 4}, 32), stack+2, codeBegin+0x1234)
	}
	r := newCheckerRing(t, false)
	r.write(record())
	if !r.calls() {
		t.Fatal("the code is new")
	}
	r.s.codes[0].Add(codeBegin + 0x1234)
	if r.write(record()); r.calls() {
		t.Error("the code is known")
	}
	r.s.codes[0].Forget(codeBegin + 0x1234)
	var sp uint64
	for i, reg := range amd64.CPU.Perf.Order {
		if int(reg) == int(amd64.CPU.SP) {
			sp = uint64(100 + i)
		}
	}
	for _, c := range []struct {
		top  uint64
		want bool
	}{{sp + 16, false}, {sp + 24, true}, {sp - 8, true}, {0, true}} {
		r.s.threads[7].top.Store(c.top)
		if r.write(record()); r.calls() != c.want {
			t.Errorf("the stack begins at %d, sp %d: it calls: %v", c.top, sp, !c.want)
		}
	}
}

// The kernel's frames stand before the registers.
func TestCheckerPassesFrames(t *testing.T) {
	plain := sampletest.SampleOf(0, []uint64{1, codeBegin + 5}, 16)
	body := []uint64{}
	for at := 8; at < len(plain); at += 8 {
		body = append(body, binary.LittleEndian.Uint64(plain[at:]))
	}
	for n, want := range map[uint64]bool{2: true, 1 << 60: true} {
		chained := append([]uint64{body[0], body[1], n, codeBegin + 1, codeBegin + 2}, body[2:]...)
		r := newCheckerRing(t, true)
		if r.write(sampletest.RecordOf(ring.KindSample, 0, chained...)); r.calls() != want {
			t.Errorf("%d frames: it calls: %v", n, !want)
		}
	}
	body[len(body)-2] = 3
	chained := append([]uint64{body[0], body[1], 2, codeBegin + 1, codeBegin + 2}, body[2:]...)
	r := newCheckerRing(t, true)
	if r.write(sampletest.RecordOf(ring.KindSample, 0, chained...)); r.calls() {
		t.Error("frames of the kernel are no code of the process")
	}
}

// A sample that can wait stays in its ring, unless the ring fills.
func TestCheckerWaits(t *testing.T) {
	plain := sampletest.SampleOf(0, make([]uint64, 64), 512)
	r := newCheckerRing(t, false)
	for n := len(plain); ; n += len(plain) {
		r.write(plain)
		if got, want := r.calls(), n > len(r.bytes)*3/4; got != want {
			t.Errorf("%d bytes of %d: it calls: %v", n, len(r.bytes), got)
		} else if want {
			break
		}
	}
}

// The checker lets no more samples wait than half of a queue has room for.
func TestCheckerLeavesRoomInQueue(t *testing.T) {
	plain := sampletest.SampleOf(0, []uint64{1}, 8)
	r := newCheckerRing(t, false)
	d := &checkerThread{s: r.s}
	d.watch(9, sampler.NewQueue(8), func(*process.KnownCode) {})
	for round := range 2 {
		for n := 1; n <= 4; n++ {
			r.write(plain)
			if got := r.calls(); got != (n == 4) {
				t.Errorf("round %d, %d samples: it calls: %v", round, n, got)
			}
		}
		r.tail = r.head
	}
}

// TestCheckerLeavesSamples: samples that can wait are read together.
func TestCheckerLeavesSamples(t *testing.T) {
	p := ctest.Run(t, `int main(void) { ready(); for (volatile long i = 0;; i++); }`)
	var late, all int64
	cfg := sampler.Config{Interval: 10 * time.Millisecond, KnownIn: func(k *process.KnownCode) {
		if k != nil {
			k.Span(0, 0, 0, 0)
		}
	}}
	cfg.Note = func(snap *look.Look) {
		all++
		if ptrace.Monotonic()-snap.When > perfSoon {
			late++
		}
	}
	if d := startChecker(nil, ctest.CPU(), false); d == nil {
		t.Skip("no checker can be started here (the race detector, or no OS thread)")
	} else {
		d.stopChecker()
	}
	perfSession(t, p.PID, cfg, nil, perfUntil(60))
	if late < all/2 {
		t.Errorf("%d of %d samples have waited", late, all)
	}
}

// TestCheckerTellsOfNewCode: if all code is new, each sample is read as it comes.
func TestCheckerTellsOfNewCode(t *testing.T) {
	head, tail := uint64(0), uint64(0)
	kernels := &ring.Ring{FD: -1, Head: &head, Tail: &tail, Data: make(ring.Bytes, 4096)}
	d := startChecker([]*ring.Ring{kernels}, ctest.CPU(), false)
	if d == nil {
		t.Skip("no checker can be started here (the race detector, or no OS thread)")
	}
	defer d.stopChecker()
	// No event fills this ring, so the descriptor that ends a sleep wakes the checker up.
	copy(kernels.Data, sampletest.RecordOf(ring.KindSample, 0, 7<<32|6, 0, 0))
	atomic.StoreUint64(&head, 32)
	ctest.Eventually(t, "it calls", func() bool {
		d.endSleep()
		return d.hasCalled()
	})
	if d.answer(); d.hasCalled() {
		t.Error("it was answered")
	}
	if d.cpu() <= 0 || unsafe.Pointer(d.s) != d.th.Room() {
		t.Error("it has used no CPU time")
	}
}

// TestCheckerSleepsIfSamplesComeOften: after some samples in a row that come soon, the checker sleeps for a time, until
// such a sleep brings no sample.
func TestCheckerSleepsIfSamplesComeOften(t *testing.T) {
	r := newCheckerRing(t, false)
	now := int64(time.Hour)
	sampleAfter := func(gap int64) int {
		now += gap
		r.write(withWord(sampletest.SampleOf(0, []uint64{1}, 8), 1, uint64(now)))
		r.calls()
		r.tail = r.head
		return r.s.often
	}
	sampleAfter(0)
	for n := 1; n < oftenMost; n++ {
		if r.calls(); sampleAfter(perfSoon) != n { // a look that finds nothing means nothing before such a sleep
			t.Fatalf("after %d samples: %d", n, r.s.often)
		}
	}
	if sampleAfter(2*perfSoon) != 0 {
		t.Error("a sample came late")
	}
	for range 2 * oftenMost {
		sampleAfter(perfSoon)
	}
	if r.s.often != oftenMost {
		t.Error("samples come often")
	}
	if sampleAfter(2*perfSoon) != oftenMost { // the first of one sleep, and the last of the next
		t.Error("two sleeps brought samples")
	}
	if r.calls(); r.s.often != 0 {
		t.Error("the sleep brought no sample")
	}
}
