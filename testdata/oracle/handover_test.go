//go:build linux

package oracle

import (
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"goprof/profile"
	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/sampler/session"
	"goprof/testdata/jvmtest"
)

// TestHandOver samples threads that compute some 50 us and then hand over to another one, as those of most servers
// do. They know what share of their CPU time handing over takes. All ways (park: timed, and mix) and both engines,
// longer, and where others want the CPUs, too:
//
//	GOPROF_HANDOVER="queue/ptrace yield/ptrace lock/ptrace park/ptrace mix/ptrace queue/perf" GOPROF_HANDOVER_SAMPLES=20000 \
//	GOPROF_HANDOVER_BESIDE=12 go test ./testdata/oracle -run TestHandOver -v -timeout 1h
//
// With GOPROF_HANDOVER_KEEP, a file, it adds to what earlier runs have counted, and tells the sum.
func TestHandOver(t *testing.T) {
	samples, beside := envNumber("GOPROF_HANDOVER_SAMPLES", 1000), envNumber("GOPROF_HANDOVER_BESIDE", 0)
	cases := envText("GOPROF_HANDOVER", "queue/ptrace yield/ptrace lock/ptrace lock/perf")
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, c := range strings.Fields(cases) {
			way, engine, _ := strings.Cut(c, "/")
			t.Run(way+" "+engine, func(t *testing.T) { handOverRun(t, jdk, way, session.EngineName(engine), samples, beside) })
		}
	})
}

// How far what is seen may be from the truth, beside chance. Each park for a time has a timer to set, which costs much
// in a virtual machine, and less while another timer is about to run out: the one that wakes goprof up
// (docs/decisions/0004). Where perf has events of threads, each switch has some to set, too, and where others want the
// CPUs it leans towards locks.
var handOverBias = map[string]float64{"park": 0.15, "mix": 0.10, "lock/perf": 0.25}

func handOverRun(t *testing.T, jdk jvmtest.JDK, way string, engine session.EngineName, samples, beside int) {
	const interval = 3333 * time.Microsecond
	busyLoops(t, beside)
	// Not inlined: which inlined method runs is another question.
	jvm := jvmtest.Start(t, jdk, "truth.HandOver", "-XX:CompileCommand=quiet",
		"-XX:CompileCommand=dontinline,truth/HandOver.*", "--", way)
	s := attach(t, jvm.PID)
	s.Walker.Warm()
	tids := threadsCalled(t, s, "hand-")
	n, hand, sleeps := 0, 0, 0
	jvm.Command("mark")
	got := sampleBy(t, s, engine, interval, samples, func(snap *look.Look, st *profile.Stack) {
		if !tids[snap.TID] {
			return
		}
		if sampler.SleepsShortly(s.Process.CPU(), &snap.Snapshot, snap.When) {
			sleeps++
		}
		for i := range st.Frames { // from the leaf
			switch st.Frames[i].Func.Name {
			case "truth.HandOver.handOver":
				hand++
				n++
				return
			case "truth.HandOver.compute":
				n++
				return
			}
		}
	})
	var truth struct{ Share float64 }
	if err := json.Unmarshal([]byte(jvm.Command("truth")[0]), &truth); err != nil {
		t.Fatal(err)
	}
	if n < samples/4 { // others than these threads compile, and collect
		t.Fatalf("only %d of %d samples are of these threads", n, samples)
	}
	seen := float64(hand) / float64(n)
	sigma := math.Sqrt(truth.Share * (1 - truth.Share) / float64(n))
	t.Logf("handing over takes %.3f of the CPU time and has %.3f of %d samples (%+.1f sigma); %.2f samples for each "+
		"interval; %d in a short sleep; %d lost, %d late; pauses p50 %v p99 %v",
		truth.Share, seen, n, (seen-truth.Share)/sigma,
		float64(got.stats.Taken)*float64(interval)/float64(got.stats.Times.Process),
		sleeps, got.stats.LostSum(), got.stats.Late, got.stats.Pauses.Quantile(0.5), got.stats.Pauses.Quantile(0.99))
	handOverSum(t, fmt.Sprintf("%d %s/%s beside %d", jdk.Version, way, engine, beside),
		handed{Truth: truth.Share, Hand: hand, Of: n})
	if timed := way == "park"; timed && sleeps < hand/2 || !timed && way != "mix" && sleeps > n/200 {
		t.Errorf("%d of %d samples are in a short sleep", sleeps, n)
	}
	bias := max(0.02, handOverBias[way])
	if !got.stats.Wide {
		bias = max(bias, handOverBias[way+"/"+string(engine)])
	}
	if off := math.Abs(seen - truth.Share); off > 4*sigma+bias {
		t.Errorf("handing over has %.3f of the samples and takes %.3f of the CPU time", seen, truth.Share)
	}
}

// busyLoops starts so many that want a CPU all the time, until the test ends.
func busyLoops(t *testing.T, n int) {
	for range n {
		cmd := exec.Command("timeout", "600", "sh", "-c", "while :; do :; done")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// The whole group: the shell goes on without timeout.
		t.Cleanup(func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); cmd.Wait() })
	}
}
