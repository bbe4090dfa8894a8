//go:build linux

package oracle

import (
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/sampler/look"
	"goprof/testdata/jvmtest"
	"goprof/testdata/sampletest"
)

// TestMix: long native calls with a little Java between them, in lockstep, sampled without bias: by number and by CPU
// time, on a machine that is idle otherwise and on one whose CPUs are all wanted by others. Longer, so that smaller
// biases show:
//
//	GOPROF_PROVE=1 GOPROF_MIX_SAMPLES=20000 go test ./testdata/oracle -run TestMix -v
func TestMix(t *testing.T) {
	sampletest.Proof(t)
	samples := envNumber("GOPROF_MIX_SAMPLES", 1500)
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, load := range []int{0, runtime.NumCPU()} {
			t.Run(strconv.Itoa(load)+" others", func(t *testing.T) {
				for range load {
					busyProcess(t)
				}
				again(t, func(t testing.TB) { mixRun(t, jdk, samples) })
			})
		}
	})
}

func busyProcess(t *testing.T) {
	t.Helper()
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
}

// mostWeight is what one sample may weigh: a thread may be charged for seconds in which a hypervisor had its CPU, and
// the next sample has all of that.
const mostWeight = int64(20 * time.Millisecond)

func mixRun(t testing.TB, jdk jvmtest.JDK, samples int) {
	jvm := jvmtest.Start(fact(t), jdk, "truth.Mix")
	defer jvm.Quit() // not beside the next try
	s := attach(t, jvm.PID)
	tids := threadsCalled(t, s, "mix")
	time.Sleep(300 * time.Millisecond) // compiled by then
	jvm.Command("mark")
	number, weight := map[string]float64{}, map[string]float64{}
	got := sample(t, s, time.Millisecond, samples, func(snap *look.Look, st *profile.Stack) {
		if !tids[snap.TID] {
			return
		}
		for _, f := range st.Frames {
			if part, ok := strings.CutPrefix(f.Func.Name, "truth.Mix."); ok && part != "mix" {
				number[part]++
				weight[part] += float64(min(snap.CPU, mostWeight))
				break
			}
		}
	})
	truth := trueShares(t, jvm)
	needTicks(t, &got.stats)
	for _, c := range []struct {
		what string
		by   map[string]float64
		n    float64 // samples that weigh as much together
	}{{"samples", number, sum(number)}, {"cpu time", weight, sum(number) / 2}} {
		all := sum(c.by)
		for _, part := range []string{"deflate", "afterDeflate", "inflate", "afterInflate"} {
			p, seen := truth[part], c.by[part]/all
			t.Logf("%s: %-13s true %5.2f %%, seen %5.2f %%", c.what, part, 100*p, 100*seen)
			// Four times what a perfect sampler misses by, and a hundredth: a tick-driven one misses by half or more.
			if off := seen - p; off*off > 16*p*(1-p)/c.n+p*p/25+0.0001 {
				t.Errorf("%s: %s is seen %.2f %% of the time, and runs for %.2f %%", c.what, part, 100*seen, 100*p)
			}
		}
	}
}

func sum(by map[string]float64) (all float64) {
	for _, v := range by {
		all += v
	}
	return all
}
