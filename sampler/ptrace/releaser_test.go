//go:build linux

package ptrace

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/sampler/look"
	"goprof/testdata/ctest"
)

// TestReleaser: a stop comes while this goroutine sleeps in Go's scheduler, so its OS thread makes no call. The thread
// is released nevertheless, each time. Collect returns the outcome of the look.
func TestReleaser(t *testing.T) {
	needHandler(t)
	p := ctest.Run(t, stopsLate, "3")
	onTracer(t, p.PID, func(tr *Tracer) {
		for n := range int64(3) {
			ctest.Eventually(t, "in vfork", func() bool { return ctest.State(p.PID, p.PID) == 'D' })
			snap := new(look.Look)
			if o := tr.Look(p.PID, Hint{}, snap); o != Pending {
				t.Fatalf("%v, want pending", o)
			}
			p.In.Write([]byte("x")) // ends the child, and the stop comes
			ctest.Eventually(t, "let go", func() bool { return ctest.TracerOf(p.PID) == 0 })
			w := *tr.pending[0].guard
			before := tr.Pauses.Sum()
			if s, o, ok := tr.Collect(); !ok || s != snap || o != Missed || tr.Pending() != 0 {
				t.Fatalf("%v, pending %d", o, tr.Pending())
			}
			held := time.Duration(w.letGo - w.clear) // before that, the thread was in vfork
			if got := tr.Pauses.Sum() - before; tr.Pauses.Count() != n+1 || got != held {
				t.Errorf("%d holds are counted; the last one for %v, want %v", tr.Pauses.Count(), got, held)
			}
			ctest.Eventually(t, "without late stops there are no signals", func() bool { return !tr.releaser.on })
		}
		if snap, o := lookPatiently(tr, p.PID, 0); o != Taken || len(snap.Stack) == 0 {
			t.Errorf("a look after that: %v", o)
		}
	})
}

// TestReleasedBeforeItIsPending: the handler lets a thread go right after the pause, before the look is on the list.
// The look came too late, and the thread lives on.
func TestReleasedBeforeItIsPending(t *testing.T) {
	needHandler(t)
	p := ctest.Run(t, ctest.Spin)
	p.Line(t)
	onTracer(t, p.PID, func(tr *Tracer) {
		tr.onItsThread()
		if e := tr.seize(p.PID); e != 0 {
			t.Fatal(e)
		}
		if !tr.openReader() {
			t.Fatal(tr.Err())
		}
		tr.guard = tr.releaser.watch(p.PID, Monotonic())
		ptrace(unix.PTRACE_INTERRUPT, uintptr(p.PID), 0, 0)
		ctest.Eventually(t, "let go", func() bool { return ctest.TracerOf(p.PID) == 0 })
		snap := new(look.Look)
		if o := tr.conclude(p.PID, running, 0, &Hint{}, snap); o != Pending {
			t.Fatalf("%v, want pending", o)
		}
		if s, o, ok := tr.Collect(); !ok || s != snap || o != Missed || tr.Pending() != 0 {
			t.Errorf("%v, pending %d", o, tr.Pending())
		}
	})
}

// needHandler skips where goprof has no signal handler of its own.
func needHandler(t *testing.T) {
	if !handlesBoundSignal() {
		t.Skip("with the race detector nothing is done in a signal handler")
	}
}

// stopsLate waits in vfork (state D) as often as it is told, each time until it is told to go on.
const stopsLate = `
int main(int argc, char **argv) {
	ready();
	char c;
	for (int n = atoi(argv[1]); n > 0; n--) if (vfork() == 0) { read(0, &c, 1); _exit(0); }
	for (volatile long i = 0;; i++);
}`

// TestReleaserLeavesPausesAlone: the handler releases no thread that this OS thread is looking at, however long the
// look takes.
func TestReleaserLeavesPausesAlone(t *testing.T) {
	needHandler(t)
	p := ctest.Run(t, ctest.Spin)
	p.Line(t)
	onTracer(t, p.PID, func(tr *Tracer) {
		tr.onItsThread()
		if e := tr.seize(p.PID); e != 0 {
			t.Fatal(e)
		}
		r := tr.releaser
		tr.letGoLater(p.PID)
		tr.beginPause()
		ctest.Eventually(t, "stopped", func() bool { return ctest.State(p.PID, p.PID) == 't' })
		w := tr.pending[0].guard
		w.found = 1 // the thread has been stopped for too long
		for range 3 {
			if r.look(); w.letGo != 0 || ctest.TracerOf(p.PID) == 0 {
				t.Fatal("it was let go in a pause")
			}
		}
		r.busy = false
		ctest.Eventually(t, "let go", func() bool { return ctest.TracerOf(p.PID) == 0 })
		if _, _, ok := tr.Collect(); ok || tr.Pending() != 0 {
			t.Errorf("pending %d", tr.Pending())
		}
	})
}
