//go:build linux

package oracle

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"goprof/heap"
	"goprof/profile"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// TestHeapGrowth: a leak of 1 MB a second beside 300 MB of garbage a second is named first within a minute. Of the same
// program without the leak, nothing is said to grow that a collection has shown to stay. It takes minutes:
// scripts/prove.sh.
func TestHeapGrowth(t *testing.T) {
	if os.Getenv("GOPROF_PROVE") == "" {
		t.Skip("GOPROF_PROVE is not set: heap's TestLiveGrowth is the short form")
	}
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, collector := range []string{"Serial", "Parallel", "G1", "Z", "Shenandoah"} {
			t.Run(collector, func(t *testing.T) {
				jvm := jvmtest.Start(t, jdk, "truth.HeapTruth", strings.Fields("-Xmx512m -XX:+UnlockExperimentalVMOptions "+
					"-XX:+Use"+collector+"GC -- 20")...)
				s, err := session.Attach(jvm.PID)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				r, err := heap.NewReader(s.VM)
				if err != nil {
					t.Fatal(err)
				}
				if got := s.VM.Collector(); !strings.HasPrefix(got, collector) {
					t.Skipf("%v has no %s, but %s", jdk, collector, got)
				}
				jvm.Command("garbage 300")
				time.Sleep(5 * time.Second) // until what the program keeps is old
				if g := grown(t, r, 8, nil); len(g.Classes) > 0 && g.Collected {
					t.Errorf("nothing leaks, and %s is said to grow: %+v", g.Classes[0].Name, g.Classes[0])
				}
				jvm.Command("leak 1000")
				leaks := []string{"byte[]", "truth.HeapTruth$Leaked"}
				g := grown(t, r, 12, func(g *profile.HeapGrowth) bool {
					return len(g.Classes) > 1 && slices.Contains(leaks, g.Classes[0].Name) && slices.Contains(leaks, g.Classes[1].Name)
				})
				t.Logf("after %v: %d classes, collected: %v", g.Over, len(g.Classes), g.Collected)
				if len(g.Classes) == 0 || !slices.Contains(leaks, g.Classes[0].Name) {
					t.Errorf("the leak is not named first within %v: %+v", g.Over, g.Classes)
				}
			})
		}
	})
}

// grown reads a heap each five seconds, until it has done so many times or until enough is known.
func grown(t *testing.T, r *heap.Reader, most int, enough func(*profile.HeapGrowth) bool) (g *profile.HeapGrowth) {
	t.Helper()
	trend := &heap.Trend{}
	for range most {
		h, err := r.Read(heap.Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		trend.Add(h)
		if g = trend.Growth(); g != nil && enough != nil && enough(g) {
			return g
		}
		time.Sleep(5 * time.Second)
	}
	if g == nil {
		t.Fatal("the old generation was never read")
	}
	return g
}
