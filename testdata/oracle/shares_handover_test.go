//go:build linux

package oracle

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/sampler/look"
	"goprof/sampler/perf"
	"goprof/session"
	"goprof/testdata/jvmtest"
	"goprof/testdata/sampletest"
)

// TestHandOver samples threads that compute some 50 us and then hand over to another one, as those of most servers
// do. They know what share of their CPU time handing over takes. In a mix each way is judged apart. All ways (park:
// timed, and mix) and both engines, longer, and where others want the CPUs, too:
//
//	GOPROF_HANDOVER="queue/ptrace yield/ptrace lock/ptrace park/ptrace mix/ptrace queue/perf" GOPROF_HANDOVER_SAMPLES=20000 \
//	GOPROF_PROVE=1 GOPROF_HANDOVER_BESIDE=12 go test ./testdata/oracle -run TestHandOver -v -timeout 1h
//
// GOPROF_HANDOVER_RATE is how many samples there are for each second of CPU time. With GOPROF_HANDOVER_KEEP, a file, it
// adds to what earlier runs have counted, and tells the sum.
func TestHandOver(t *testing.T) {
	sampletest.Proof(t)
	samples, beside := envNumber("GOPROF_HANDOVER_SAMPLES", 700), envNumber("GOPROF_HANDOVER_BESIDE", 0)
	cases := envText("GOPROF_HANDOVER", "queue/ptrace lock/perf")
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, c := range strings.Fields(cases) {
			way, engine, _ := strings.Cut(c, "/")
			t.Run(way+" "+engine, func(t *testing.T) {
				again(t, func(t testing.TB) { handOverRun(t, jdk, way, session.EngineName(engine), samples, beside) })
			})
		}
	})
}

// How far what is seen may be from the truth, beside chance. Each park for a time has a timer to set, which costs much
// in a virtual machine, and less while another timer is about to run out: the one that wakes goprof up
// (docs/decisions/0004).
var handOverBias = map[string]float64{"park": 0.15}

// leastBias is what every way may be off. The goal of 20,000 samples is 3 standard errors or 0.01.
const leastBias = 0.01

func handOverRun(t testing.TB, jdk jvmtest.JDK, way string, engine session.EngineName, samples, beside int) {
	interval := time.Second / time.Duration(envNumber("GOPROF_HANDOVER_RATE", 300))
	busyLoops(t, beside)
	// Not inlined: which inlined method runs is another question.
	jvm := jvmtest.Start(fact(t), jdk, "truth.HandOver", "-XX:CompileCommand=quiet",
		"-XX:CompileCommand=dontinline,truth/HandOver.*", "--", way)
	defer jvm.Quit() // not beside the next try
	s := attach(t, jvm.PID)
	s.Walker.Warm()
	wayOf, seen := map[int]string{}, map[string]*handed{}
	ways := []string{way}
	if way == "mix" {
		ways = []string{"queue", "yield", "lock", "park"}
	}
	for _, way := range ways {
		seen[way] = &handed{}
		for tid := range threadsCalled(t, s, "hand-"+way) {
			wayOf[tid] = way
		}
	}
	jvm.Command("mark")
	got := sampleBy(t, s, engine, interval, samples, func(snap *look.Look, st *profile.Stack) {
		if of := seen[wayOf[snap.TID]]; of != nil {
			of.see(st, perf.SleepsShortly(s.Process.CPU(), &snap.Snapshot, snap.When))
		}
	})
	all := handed{}
	for _, line := range jvm.Command("truth") {
		var truth struct {
			Way   string
			Share float64
			Far   int
		}
		if err := json.Unmarshal([]byte(line), &truth); err != nil {
			t.Fatal(err)
		}
		one := seen[truth.Way]
		one.Truth = truth.Share
		all = all.add(*one)
		t.Logf("%s: %v; %d in a short sleep; %d measurements are no truth", truth.Way, one, one.sleeps, truth.Far)
		checkHanded(t, truth.Way, one)
	}
	if all.Of < samples/4 { // others than these threads compile, and collect
		t.Errorf("only %d of %d samples are of these threads", all.Of, samples)
	}
	t.Logf("together: %v; %.2f samples for each interval; %d lost; pauses p50 %v p99 %v", &all,
		float64(got.stats.Taken)*float64(interval)/float64(got.stats.Times.Process), got.stats.LostSum(),
		got.stats.Pauses.Quantile(0.5), got.stats.Pauses.Quantile(0.99))
	handOverSum(t, fmt.Sprintf("%d %s/%s beside %d", jdk.Version, way, engine, beside), all)
}

// see counts a sample of a thread that hands over. Outside of its rounds the thread measures itself.
func (h *handed) see(st *profile.Stack, sleeps bool) {
	computes := false
	for i := range st.Frames { // from the leaf
		switch st.Frames[i].Func.Name {
		case "truth.HandOver.compute":
			computes = true
		case "truth.HandOver.rounds":
			h.Of++
			if !computes {
				h.Hand++
			}
			if sleeps {
				h.sleeps++
			}
			return
		}
	}
}

func checkHanded(t testing.TB, way string, h *handed) {
	t.Helper()
	if timed := way == "park"; timed && h.sleeps < h.Hand/2 || !timed && h.sleeps > h.Of/200 {
		t.Errorf("%s: %d of %d samples are in a short sleep", way, h.sleeps, h.Of)
	}
	bias := max(leastBias, handOverBias[way])
	if off := math.Abs(h.seen() - h.Truth); off > 4*h.sigma()+bias {
		t.Errorf("%s: handing over has %.3f of the samples and takes %.3f of the CPU time", way, h.seen(), h.Truth)
	}
}

// busyLoops has so many want a CPU all the time, until the test ends, or is killed.
func busyLoops(t testing.TB, n int) {
	if n > 0 {
		overload(t, n, 10*time.Minute)
	}
}
