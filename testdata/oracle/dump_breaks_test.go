//go:build linux

package oracle

import (
	"testing"

	"goprof/process/procfs"
	"goprof/sampler/ptrace"
	"goprof/session"
	"goprof/testdata/ctest"
	"goprof/testdata/jvmtest"
)

// TestDumpBreaksNoCallOff: a dump stops no thread whose system call would end early, if its stack is whole without a
// stop. A thread that was not stopped has had no turn on a CPU since.
func TestDumpBreaksNoCallOff(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm, _ := startStates(t, jdk)
		s := attach(t, jvm.PID)
		awaitSleep(t, s, map[string]bool{"is-parked": true, "is-selecting": true, "is-accepting": true})
		proc := procfs.OpenDir(jvm.PID)
		defer proc.Close()
		turns := func(tid int) uint64 {
			charge, ok := ptrace.ChargeOf(proc, tid)
			if !ok {
				t.Skip("this kernel does not count turns")
			}
			return charge.Turns
		}
		named := map[string]dumpedThread{}
		before := map[int]uint64{}
		for _, th := range dumped(t, s, session.DumpOptions{}) {
			named[th.Name], before[th.TID] = th, turns(th.TID)
		}
		dumped(t, s, session.DumpOptions{})
		parked := named["is-parked"].TID
		ctest.Eventually(t, "a stop gives a turn", func() bool { return turns(parked) != before[parked] })
		for _, name := range []string{"is-selecting", "is-accepting"} {
			th := named[name]
			if th.Truncated != "" || len(th.Frames) == 0 || turns(th.TID) != before[th.TID] {
				t.Errorf("%s had %d turns by the dump: %s", name, turns(th.TID)-before[th.TID], dumpedText(&th))
			}
		}
	})
}
