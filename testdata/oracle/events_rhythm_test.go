//go:build linux

package oracle

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/testdata/jvmtest"
)

// rhythmClasses are what the places of truth.Rhythm allocate.
var rhythmClasses = []string{"byte[]", "long[]", "truth.Rhythm$Small", "char[]"}

// rhythmPoints is how far a class's share may be from the true one, and lotPoints where sizes and order are drawn: what
// the copied buffers held is then a sample, too.
const rhythmPoints, lotPoints = 0.03, 0.045

// TestRhythm: a program allocates in a fixed order, in step with its buffers, or what is drawn. The bytes of each class
// are those that the program has counted.
func TestRhythm(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		heaps := []string{"-XX:+UseG1GC -XX:-ResizeTLAB -XX:TLABSize=512k"}
		if longForm {
			heaps = nil
			for _, heap := range append(allocHeaps[:len(allocHeaps):len(allocHeaps)], "-XX:+UseConcMarkSweepGC") {
				heaps = append(heaps, heap+" -XX:-ResizeTLAB -XX:TLABSize=100k", heap)
			}
		}
		for _, heap := range heaps {
			if jdk.Version < 15 && (strings.Contains(heap, "UseZGC") || strings.Contains(heap, "Shenandoah")) ||
				jdk.Version >= 14 && strings.Contains(heap, "ConcMarkSweep") {
				continue
			}
			for _, order := range jvmtest.Drawn(t, 1, []string{"turn", "lot"}) {
				t.Run(strings.TrimPrefix(heap, "-XX:+Use")+" "+order, func(t *testing.T) {
					jvm := jvmtest.Start(t, jdk, "truth.Rhythm", append(strings.Fields(heap), "-Xmx256m", "--", order, "150000000",
						"1")...)
					again(t, func(t testing.TB) { rhythmRun(t, jvm, order) })
				})
			}
		}
	})
}

func rhythmRun(t testing.TB, jvm *jvmtest.JVM, order string) {
	s := attach(t, jvm.PID)
	var before, after []float64
	for tries := 0; ; tries++ {
		plan := findEvent(t, s, profile.EventAlloc, 0)
		p, sum := recordEvent(t, s, plan, func() {
			before = rhythmBytes(t, jvm)
			time.Sleep(2 * time.Second)
			after = rhythmBytes(t, jvm)
		})
		c := sum.Contents
		if c == nil {
			t.Fatal("the account does not say how the bytes of classes are known")
		}
		t.Logf("%+v; %s", *c, sum.Quality)
		// On a busy machine each copy may come after a collection.
		if c.Buffers < 20 && tries < 5 {
			continue
		}
		checkRhythm(t, p, before, after, order)
		// On 8 code of C1 and the interpreter get buffers without a call of the JVM, so their ends are not seen
		// (c1_Runtime1_x86.cpp, FastTLABRefill).
		if order == "lot" && jvm.JDK.Version > 8 && c.InStep && c.Apart > rhythmPoints {
			t.Errorf("what is drawn is in step: %.2f apart", c.Apart)
		}
		if order == "turn" && c.InStep && c.Apart > 0.05 && sum.Quality == profile.Good {
			t.Errorf("the ends of buffers are %.2f apart, and the recording is good", c.Apart)
		}
		return
	}
}

// checkRhythm holds the shares of classes against what the program has counted.
func checkRhythm(t testing.TB, p *profile.Profile, before, after []float64, order string) {
	t.Helper()
	points := rhythmPoints
	if order == "lot" {
		points = lotPoints
	}
	truth, bytes, all := 0.0, make([]float64, len(rhythmClasses)), 0.0
	for i, class := range rhythmClasses {
		truth += after[i] - before[i]
		bytes[i] = float64(byLeaf(p, class))
		all += bytes[i]
	}
	for i, class := range rhythmClasses {
		got, want := bytes[i]/max(all, 1), (after[i]-before[i])/truth
		t.Logf("%-20s %.2f %%, in truth %.2f %%", class, 100*got, 100*want)
		if math.Abs(got-want) > points {
			t.Errorf("%s has %.1f %% of the bytes, in truth %.1f %%", class, 100*got, 100*want)
		}
	}
	if all < truth*0.8 || all > truth*1.3 {
		t.Errorf("%.0f bytes in samples, the program has allocated %.0f", all, truth)
	}
}

// rhythmBytes asks the program how many bytes each place has allocated.
func rhythmBytes(t testing.TB, jvm *jvmtest.JVM) []float64 {
	t.Helper()
	var bytes []float64
	for _, line := range jvm.Command("allocated") {
		n, err := strconv.ParseFloat(line, 64)
		if err != nil {
			t.Fatal(err)
		}
		bytes = append(bytes, n)
	}
	if len(bytes) != len(rhythmClasses) {
		t.Fatalf("%d places", len(bytes))
	}
	return bytes
}
