//go:build linux

package oracle

import (
	"os"
	"strings"
	"testing"

	"goprof/process"
	"goprof/profile"
	"goprof/testdata/captured"
	"goprof/testdata/jvmtest"
	"goprof/unwind"
	"goprof/vmstructs"
)

// TestContendedNatives: threads that wait for the monitor of a synchronized native method have
// whole stacks. GOPROF_RECORD_WALKS=1 makes the recordings of unwind/testdata/contended anew.
func TestContendedNatives(t *testing.T) {
	t.Parallel()
	lib := buildNative(t, "contended.c", "libcontended.so", withCFI...)
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Contended", append(jniFlags(jdk), "--", lib.path)...)
		s := attach(t, jvm.PID)
		rec, w := recorderOf(t, s.Process)
		threads, err := s.Threads()
		if err != nil {
			t.Fatal(err)
		}
		waiters := 0
		for tid, th := range threads {
			if !strings.HasPrefix(th.Name, "waiter-") {
				continue
			}
			waiters++
			var stack profile.Stack
			var snap *process.Snapshot
			err := stopped(s.Process, tid, th.Hint, func(sn *process.Snapshot) {
				snap = sn
				rec.Begin(snap)
				w.Walk(snap, &stack)
			})
			if err != nil {
				t.Fatal(err)
			}
			var java []string
			for _, f := range stack.Frames {
				if f.Kind.Java() && strings.HasPrefix(f.Func.Name, "truth.") {
					java = append(java, f.Func.Name)
				}
			}
			want := map[string]string{"waiter-0": "truth.Contended.ofClass", "waiter-1": "truth.Contended.ofInstance"}[th.Name]
			if stack.Truncated != profile.Whole || len(java) < 2 || java[0] != want || java[1] != "truth.Contended.call" {
				t.Errorf("%s: %v\n%s", th.Name, stack.Truncated, describe(s, snap, &stack))
			}
		}
		if waiters != 2 {
			t.Errorf("%d threads wait", waiters)
		}
		if os.Getenv("GOPROF_RECORD_WALKS") != "" {
			saveWalks(t, rec, walksFile(t, "contended", "native", jdk))
		}
	})
}

// recorderOf records what a walker reads of p.
func recorderOf(t *testing.T, p *process.Process) (*captured.Recorder, *unwind.Walker) {
	t.Helper()
	rec := captured.NewRecorder(p)
	vm, err := vmstructs.Open(rec)
	if err != nil {
		t.Fatal(err)
	}
	w := unwind.New(rec, vm)
	w.RawNames = true
	w.Warm()
	return rec, w
}

func saveWalks(t *testing.T, rec *captured.Recorder, name string) {
	t.Helper()
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := rec.Save(file, nil); err != nil {
		t.Fatal(err)
	}
	if info, err := file.Stat(); err == nil {
		t.Logf("%s: %d bytes", name, info.Size())
	}
}
