//go:build linux

package sampler

import (
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"strconv"
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
}

func newLookedOut(t *testing.T, most int) *lookedOut {
	t.Helper()
	needPerf(t)
	if !mayWatchWide() {
		t.Skip("perf events of CPUs are not permitted here")
	}
	l := &lookedOut{lookout: &lookout{bell: -1}}
	if err := l.open(os.Getpid(), ctest.CPU()); err != nil {
		l.free()
		t.Skipf("this kernel takes no lookout: %v", err)
	}
	t.Cleanup(l.free)
	l.room.most = uint64(most)
	var err error
	if l.rings, err = openPerfRings(onlineCPUs(), groupRing); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.rings.close)
	l.rings.lookout = l.lookout
	t.Cleanup(func() { l.rings.lookout = nil })
	wide := &wideEvents{rings: l.rings, cpu: ctest.CPU(), kernel: inKernel, interval: int64(time.Millisecond),
		filter: l.prog, most: 32 << 10, copies: stackFit{stack: 32 << 10}, rng: rand.New(rand.NewPCG(1, 2))}
	if !wide.open() {
		t.Fatal("no events of CPUs")
	}
	t.Cleanup(wide.closeEvents)
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

func TestLookoutCalls(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l := newLookedOut(t, 1<<40)
	code := &l.room.code
	code.Span(word-0x10000, word+0x10000, 0, 0)
	if !l.calls(t, 0) {
		t.Error("the thread is not known, and it does not call")
	}
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		tid, _ := strconv.Atoi(task.Name())
		l.know(tid, &ptrace.Hint{})
	}
	for _, above := range []int{0, 1, 7, 8, 255, 256, 1000, 3<<10 - 1} {
		if !l.calls(t, above) {
			t.Errorf("%d words above there is new code, and it does not call", above)
		}
	}
	l.know(unix.Gettid(), &ptrace.Hint{Skip: true})
	if l.calls(t, 8) {
		t.Error("it calls for a thread of which no samples are wanted")
	}
	l.know(unix.Gettid(), &ptrace.Hint{})
	if l.copies(1 << 10); l.calls(t, 3<<10-1) {
		t.Error("it calls for what is not copied")
	}
	l.copies(32 << 10)
	code.Add(word)
	if l.calls(t, 8) {
		t.Error("it calls for code that is known")
	}
	if code.Forget(word); !l.calls(t, 8) {
		t.Error("it does not call again for code that is forgotten")
	}
	if code.Span(word-0x10000, word+0x10000, word, word+1); l.calls(t, 8) {
		t.Error("it calls for code that never changes")
	}
	if l.room.most = 2; !l.calls(t, 8) {
		t.Error("it does not call for samples that lie in the rings")
	}
}

// The pc counts, too, and code beyond the places that can be known is always new.
func TestLookoutSeesThePC(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l := newLookedOut(t, 1<<40)
	l.know(unix.Gettid(), &ptrace.Hint{StackTop: 8}) // it lies below the stack
	pc := uint64(reflect.ValueOf(onStack).Pointer())
	l.room.code.Span(pc-1<<20, pc+1<<20, 0, 0)
	if !l.calls(t, 0) {
		t.Error("it does not call")
	}
	beyond := uint64(process.KnownPlaces) << process.KnownShift
	l.room.code.Span(word-beyond, word+1, 0, 0)
	l.room.code.AddAll(word-beyond, word)
	if !l.calls(t, 0) {
		t.Error("it does not call for what is beyond")
	}
}
