//go:build linux

package ptrace

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/sampler/look"
	"goprof/testdata/ctest"
)

// onTracer runs f with a Tracer of pid, on an OS thread that ends afterwards.
func onTracer(t testing.TB, pid int, f func(tr *Tracer)) {
	t.Helper()
	cpu := ctest.NeedCPU(t)
	OnOwnThread(func() {
		tr := NewTracer(pid, cpu)
		defer tr.Close()
		if os.Getenv("GOPROF_SLOW") != "" { // each wait for an emulated CPU would close the gate for longer
			tr.gate = &gate{tid: unix.Gettid(), sources: sources{urgent: true, schedstat: -1, loadavg: -1}}
		}
		f(tr)
	})
}

// lookPatiently is Look. If the stop comes late, Collect follows. It looks again if a stop was not admitted, if a stop
// came while this goroutine had no turn, and if a read was late because this OS thread had no CPU.
func lookPatiently(tr *Tracer, tid int, top uint64) (*look.Look, Outcome) {
	return lookAt(tr, tid, Hint{StackTop: top})
}

func lookAt(tr *Tracer, tid int, hint Hint) (*look.Look, Outcome) {
	snap := new(look.Look)
	o := tr.Look(tid, hint, snap)
	for range 10000 {
		if o != Pending && o != Unadmitted && o != Missed && o != ReadLate {
			return snap, o
		}
		time.Sleep(time.Millisecond)
		if o != Pending {
			o = tr.Look(tid, hint, snap)
			continue
		}
		if s, got, ok := tr.Collect(); ok && s == snap {
			o = got
		}
	}
	return snap, o
}
