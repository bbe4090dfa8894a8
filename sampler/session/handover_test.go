//go:build linux

package session

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/target"
	"goprof/testdata/jvmtest"
)

// TestHandOver samples threads that compute some 50 us and then hand over to another one, as those of most servers do. They
// know what share of their CPU time handing over takes. Longer, and where others want the CPUs, too:
//
//	GOPROF_HANDOVER_SAMPLES=20000 GOPROF_HANDOVER_BESIDE=12 go test ./sampler/session -run TestHandOver -v -timeout 1h
func TestHandOver(t *testing.T) {
	samples, beside := envNumber("GOPROF_HANDOVER_SAMPLES", 3000), envNumber("GOPROF_HANDOVER_BESIDE", 0)
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, way := range strings.Fields(envText("GOPROF_HANDOVER_WAYS", "queue yield lock park mix")) {
			for _, engine := range []Engine{PtraceEngine, PerfEngine} {
				t.Run(way+" "+string(engine), func(t *testing.T) { handOverRun(t, jdk, way, engine, samples, beside) })
			}
		}
	})
}

func handOverRun(t *testing.T, jdk jvmtest.JDK, way string, engine Engine, samples, beside int) {
	busyLoops(t, beside)
	// Not inlined: which inlined method runs is another question.
	jvm := jvmtest.Start(t, jdk, "truth.HandOver", "-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,truth/HandOver.*", "--", way)
	s := attach(t, jvm.PID)
	s.walker.Warm()
	tids := threadsCalled(t, s, "hand-")
	n, hand, other := 0, 0, 0
	leaves := map[string]int{}
	defer func() {
		keys := slices.SortedFunc(maps.Keys(leaves), func(a, b string) int { return leaves[b] - leaves[a] })
		for _, k := range keys[:min(len(keys), 12)] {
			t.Logf("   %5d %s", leaves[k], k)
		}
	}()
	jvm.Command("mark")
	got := sampleBy(t, s, engine, 3333*time.Microsecond, samples, func(snap *target.Snapshot, st *profile.Stack) {
		if !tids[snap.TID] {
			return
		}
		leaves[fmt.Sprint(st.Frames[0].Func.Name, " ", snap.Syscall)]++
		for i := range st.Frames { // from the leaf
			switch st.Frames[i].Func.Name {
			case "truth.HandOver.handOver":
				hand++
				n++
				return
			case "truth.HandOver.compute":
				n++
				return
			case "truth.HandOver.work", "truth.HandOver.measuredRound":
				other++
				return
			}
		}
		other++
	})
	var truth struct{ Share float64 }
	if err := json.Unmarshal([]byte(jvm.Command("truth")[0]), &truth); err != nil {
		t.Fatal(err)
	}
	seen := float64(hand) / float64(n)
	sigma := math.Sqrt(truth.Share * (1 - truth.Share) / float64(n))
	t.Logf("handing over takes %.3f of the CPU time and has %.3f of %d samples (%+.1f sigma); elsewhere %d; %d truncated, %v lost, asleep %d, late %d, visits %v; pauses p50 %v p99 %v max %v; %.2f samples for each interval",
		truth.Share, seen, n, (seen-truth.Share)/sigma, other, got.attempted()-got.whole-int(got.stats.LostSum()), got.stats.LostSum(), got.stats.Asleep, got.stats.Late, got.stats.Visits,
		got.stats.Pauses.Quantile(0.5), got.stats.Pauses.Quantile(0.99), got.stats.Pauses.Max(),
		float64(got.stats.Taken)*3333e3/float64(got.stats.Times.Process))
	if math.Abs(seen-truth.Share) > max(0.02, 4*sigma) {
		t.Errorf("handing over has %.3f of the samples and takes %.3f of the CPU time", seen, truth.Share)
	}
}

// busyLoops starts so many that want a CPU all the time, until the test ends.
func busyLoops(t *testing.T, n int) {
	for range n {
		cmd := exec.Command("timeout", "600", "sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	}
}
