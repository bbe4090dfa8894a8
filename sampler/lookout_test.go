//go:build linux

package sampler

import (
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/process"
	"goprof/sampler/ptrace"
	"goprof/testdata/ctest"
)

// lookedOut is a lookout for samples of this process.
type lookedOut struct {
	*lookout
	rings *perfRings
	wide  *wideEvents
}

// hasLoop reports whether the kernel has bpf_loop.
func hasLoop() bool {
	c := lookoutCode{bpfCode: &bpfCode{jumps: map[string][]int{}}}
	c.imm(bpfMovImm, r1, 1)
	c.imm(bpfMovImm, r3, 0)
	c.each("nothing")
	c.op(bpfExit, 0, 0, 0, 0)
	c.function("nothing")
	c.imm(bpfMovImm, r0, 0)
	c.op(bpfExit, 0, 0, 0, 0)
	fd, err := c.loadForPerf(nil)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

// openLookout is a lookout for this process. A kernel that has bpf_loop must take its program.
func openLookout(t *testing.T, most int) *lookout {
	t.Helper()
	needsBPF(t)
	l, log := &lookout{bell: -1, most: uint64(most)}, make([]byte, 1<<20)
	t.Cleanup(l.free)
	if err := l.open(os.Getpid(), ctest.CPU(), log); err != nil && hasLoop() {
		t.Fatalf("%v: %s", err, unix.ByteSliceToString(log))
	} else if err != nil {
		t.Skipf("this kernel has no bpf_loop, and takes no lookout: %v", err)
	}
	return l
}

// TestLookoutProgram: the kernel's verifier takes the program where it has bpf_loop.
func TestLookoutProgram(t *testing.T) { openLookout(t, 1) }

func newLookedOut(t *testing.T, most int) *lookedOut {
	t.Helper()
	needPerf(t)
	if !mayWatchWide() {
		t.Skip("perf events of CPUs are not permitted here")
	}
	l := &lookedOut{lookout: openLookout(t, most)}
	var err error
	if l.rings, err = openPerfRings(onlineCPUs(), groupRing); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.rings.close)
	l.rings.heed(l.lookout)
	l.half = 0 // how much of a ring is full is no matter of these tests
	l.wide = &wideEvents{rings: l.rings, cpu: ctest.CPU(), kernel: inKernel, interval: int64(time.Millisecond),
		filter: l.prog, most: 32 << 10, copies: stackFit{stack: 32 << 10}, rng: rand.New(rand.NewPCG(1, 2))}
	if l.wide.open() != nil {
		t.Fatal("no events of CPUs")
	}
	t.Cleanup(l.wide.closeEvents)
	return l
}

// word lies in the code of these tests, at a place of its own.
const word = uint64(0x123456789a40)

// calls reports whether the lookout has called while this thread had samples. Meanwhile a word lies on the thread's
// stack, so many words above where it is sampled.
func (l *lookedOut) calls(t *testing.T, above int) (called bool) {
	t.Helper()
	l.rings.read(func(ringBytes, perfRecord) {})
	if onStack(above, func() {
		for end := threadCPU() + 20*time.Millisecond; threadCPU() < end; {
		}
		called = l.rung.Load() != l.heard.Load()
	}) != word {
		t.Error("the word was not there")
	}
	samples := 0
	var s rawSample
	l.rings.read(func(b ringBytes, rec perfRecord) {
		if rec.kind == perfSample && b.parse(rec, ctest.CPU(), false, &s) && s.tid == unix.Gettid() {
			samples++
		}
	})
	if samples == 0 {
		t.Error("the thread has no samples")
	}
	return called
}

//go:noinline
func onStack(above int, f func()) uint64 {
	var words [3 << 10]uint64
	words[above] = word
	f()
	return words[above]
}

// knowOthers makes the other threads of this process known. No samples are wanted of them.
func (l *lookedOut) knowOthers(t *testing.T) {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		if tid, _ := strconv.Atoi(task.Name()); tid != unix.Gettid() {
			l.know(tid, &ptrace.Hint{Skip: true})
		}
	}
}

// isSilent reports whether the lookout does not call. For a thread that Go has made since the others became known it
// calls, so it is asked some times.
func (l *lookedOut) isSilent(t *testing.T, above int) bool {
	t.Helper()
	for range 10 {
		if l.knowOthers(t); !l.calls(t, above) {
			return true
		}
	}
	return false
}

func TestLookoutCalls(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l := newLookedOut(t, 1<<40)
	code := &l.room.code
	code.Span(word-0x10000, word+0x10000, 0, 0)
	l.knowOthers(t)
	if !l.calls(t, 0) {
		t.Error("the thread is not known, and it does not call")
	}
	l.know(unix.Gettid(), &ptrace.Hint{})
	for _, above := range []int{0, 1, 7, 8, 255, 256, 1000, 3<<10 - 1} {
		if !l.calls(t, above) {
			t.Errorf("%d words above there is new code, and it does not call", above)
		}
	}
	l.know(unix.Gettid(), &ptrace.Hint{Skip: true})
	if !l.isSilent(t, 8) {
		t.Error("it calls for a thread of which no samples are wanted")
	}
	l.know(unix.Gettid(), &ptrace.Hint{})
	if l.copies(1 << 10); !l.isSilent(t, 3<<10-1) {
		t.Error("it calls for what is not copied")
	}
	l.copies(32 << 10)
	code.Add(word)
	if !l.isSilent(t, 8) {
		t.Error("it calls for code that is known")
	}
	if code.Forget(word); !l.calls(t, 8) {
		t.Error("it does not call again for code that is forgotten")
	}
	if code.Span(word-0x10000, word+0x10000, word, word+1); !l.isSilent(t, 8) {
		t.Error("it calls for code that never changes")
	}
	if l.most = 2; !l.calls(t, 8) {
		t.Error("it does not call for samples that lie in the rings")
	}
}

// TestLookoutEndsWait: the bell ends the sleep. Once it was answered it is quiet.
func TestLookoutEndsWait(t *testing.T) {
	l := newLookedOut(t, 1<<40)
	var over atomic.Bool
	var others sync.WaitGroup
	others.Go(func() { // no thread is known
		for !over.Load() {
		}
	})
	at := slices.IndexFunc(l.rings.polls, func(p unix.PollFd) bool { return int(p.Fd) == l.bell })
	end := time.Now().Add(10 * time.Second)
	ptrace.OnThreadHoldingNobody(func() { // its priority ends with it
		for l.rings.polls[at].Revents == 0 && time.Now().Before(end) { // signals of Go's own end a sleep, too
			l.rings.wait(ptrace.Monotonic()+int64(20*time.Second), true)
		}
	})
	if l.rings.polls[at].Revents != unix.POLLIN || time.Now().After(end) {
		t.Errorf("it does not end the sleep: %+v", l.rings.polls)
	}
	over.Store(true)
	others.Wait()
	l.wide.closeEvents()
	l.answer()
	bell := []unix.PollFd{{Fd: int32(l.bell), Events: unix.POLLIN}}
	if n, err := unix.Poll(bell, 0); n != 0 || err != nil {
		t.Errorf("it was answered, and is not quiet: %+v, %v", bell, err)
	}
}

// TestLookoutMisses: the rings were read after the program had let a sample pass, and before the kernel wrote it. They
// are read again soon, once. A sample that is lost then is not waited for again.
func TestLookoutMisses(t *testing.T) {
	head, tail := uint64(0), uint64(0)
	ring := &perfRing{head: &head, tail: &tail, data: make(ringBytes, 4096)}
	l := &lookout{most: 8, room: new(lookoutRoom), heard: new(atomic.Uint64), rung: new(atomic.Uint64)}
	r := &perfRings{cpus: []int{0}, steady: []*perfRing{ring}, lookout: l}
	plain := sampleOf(0, nil, 0)
	for i, c := range []struct {
		begun, written int
		soon           bool
	}{
		{0, 0, false},
		{1, 1, false},
		{2, 1, true}, // one is under way
		{0, 1, false},
		{1, 0, true}, // it is lost
		{0, 0, false},
		{2, 2, false},
		{1, 0, true},
		{0, 1, false},
		{0, 2, false}, // of other events
		{1, 0, true},
	} {
		l.room.begun.Add(uint64(c.begun))
		for range c.written {
			for j, b := range plain {
				ring.data[(head+uint64(j))%uint64(len(ring.data))] = b
			}
			head += uint64(len(plain))
		}
		r.read(func(ringBytes, perfRecord) {})
		if soon := l.wakeBy(1000, 1e9) == 1000+lateSoon; soon != c.soon {
			t.Errorf("reading %d: it looks again soon: %v", i, soon)
		}
		if limit := l.room.limit.Load(); limit != l.room.begun.Load()+8 {
			t.Errorf("reading %d: it calls at %d samples, and %d have begun", i, limit, l.room.begun.Load())
		}
	}
	if l.wakeBy(1000, 2000) != 2000 {
		t.Error("it sleeps longer than it is to")
	}
	began := ptrace.Monotonic()
	r.wait(began+int64(10*time.Second), true)
	if passed := time.Duration(ptrace.Monotonic() - began); passed > 5*time.Second {
		t.Errorf("it is late, and has slept for %v", passed)
	}
}

// TestLookoutCallsBeforeARingIsHalfFull: so no ring ends a wait while there is a lookout.
func TestLookoutCallsBeforeARingIsHalfFull(t *testing.T) {
	large, small := &perfRing{fd: 7, data: make(ringBytes, 8<<20)}, &perfRing{fd: 8, data: make(ringBytes, 1<<20)}
	room := func(ring *perfRing) unix.PollFd { return unix.PollFd{Fd: int32(ring.fd), Events: unix.POLLIN} }
	r := &perfRings{steady: []*perfRing{large, small}, polls: []unix.PollFd{room(large), room(small)}}
	l := &lookout{bell: 9, most: 64, room: new(lookoutRoom), heard: new(atomic.Uint64), rung: new(atomic.Uint64)}
	r.heed(l)
	if len(r.polls) != 1 || r.polls[0].Fd != 9 {
		t.Errorf("waited for: %v", r.polls)
	}
	l.answer()
	for _, c := range []struct{ stack, most, limit int }{
		{2 << 10, 64, 64}, // as many as are read together
		{62 << 10, 8, 8},  // of 64 KB each, into half of the smaller ring
		{30 << 10, 16, 8}, // those that lie there may still be larger
		{2 << 20, 1, 1},
	} {
		l.copies(c.stack)
		if got := int(l.room.limit.Load()); got != c.limit {
			t.Errorf("copies of %d KB: it calls at sample %d, not %d", c.stack>>10, got, c.limit)
		}
		if got := int(l.together()); got != c.most {
			t.Errorf("copies of %d KB: it calls when %d samples lie there, not %d", c.stack>>10, got, c.most)
		}
	}
	r.dropLookout(func(*process.KnownCode) {})
	if len(r.polls) != 2 {
		t.Errorf("without it the rings are waited for: %v", r.polls)
	}
}

// TestLookoutSeesThePC: the pc counts, too. The stack is left out.
func TestLookoutSeesThePC(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l := newLookedOut(t, 1<<40)
	l.copies(0)
	l.know(unix.Gettid(), &ptrace.Hint{})
	l.knowOthers(t)
	pc, code := uint64(reflect.ValueOf(onStack).Pointer()), &l.room.code
	begin, end := pc-min(pc, 64<<20), pc+64<<20
	code.Span(begin, end, 0, 0)
	if !l.calls(t, 0) {
		t.Error("it does not call")
	}
	if code.AddAll(begin, end); !l.isSilent(t, 0) {
		t.Error("it calls though the code is known")
	}
}

// TestLookoutBeyond: code beyond the places that can be known is always new.
func TestLookoutBeyond(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l := newLookedOut(t, 1<<40)
	l.know(unix.Gettid(), &ptrace.Hint{})
	l.knowOthers(t)
	beyond := uint64(process.KnownPlaces) << process.KnownShift
	l.room.code.Span(word-beyond, word+1, 0, 0)
	l.room.code.AddAll(word-beyond, word)
	if !l.calls(t, 0) {
		t.Error("it does not call")
	}
	l.room.code.Span(word-beyond+64, word+1, 0, 0)
	if l.room.code.Add(word); !l.isSilent(t, 0) {
		t.Error("it calls for the last place")
	}
}
