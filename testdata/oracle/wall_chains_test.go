//go:build linux

package oracle

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// chainSink sums up the waits of stage-3 of truth.Relay by their chains of wakers.
type chainSink struct {
	allocatedSink
	of map[string]time.Duration // "stage-2 stage-1 source-a timer"
}

func (s *chainSink) Sample(sample *profile.Sample) {
	at := sample.Stack.StateAt()
	if at < 1 || sample.Thread.JavaName != "stage-3" || sample.State != profile.Parked {
		return
	}
	var names []string
	for _, f := range slices.Backward(sample.Stack.Frames[:at]) {
		name, isThread := strings.CutPrefix(f.Func.Name, "[")
		name, _, hasTID := strings.Cut(name, " tid=")
		switch {
		case strings.HasPrefix(name, "woken by: timer"):
			names = append(names, "timer")
		case f.Func.Name == profile.WokenBy:
		case profile.IsWaker(f.Func.Name), isThread && hasTID:
			names = append(names, name)
		}
	}
	s.of[strings.Join(names, " ")] += sample.Span
}

// TestChains: the wakers of a wait are followed to the one that began, and never to a wrong one.
func TestChains(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Relay", "-XX:CompileCommand=quiet")
		if err := session.TryWakers(jvm.PID); err != nil {
			t.Skipf("the kernel notes no wake-ups here: %v", err)
		}
		length := "1500"
		if longForm {
			length = "10000"
			if n := envNumber("GOPROF_OVERLOAD", 0); n > 0 {
				overload(t, n, time.Minute)
			}
		}
		jvm.Command("pass 300") // what is new is compiled
		again(t, func(t testing.TB) {
			sink := &chainSink{allocatedSink{last: map[string]uint64{}}, map[string]time.Duration{}}
			var told []string
			sum := recordSwitches(t, jvm, session.RecordOptions{Sink: sink, Wakers: true, Chain: 4}, func() {
				time.Sleep(time.Second / 2) // until wake-ups are noted
				told = jvm.Command("pass " + length)
			})
			t.Logf("%v: %+v, %+v, lost %v", jdk, *sum.Switches, sum.Wakers, sum.LostBy)
			checkChains(t, sink.of, told, sum.Switches.Thinned > 0)
		})
	})
}

// compilers are threads of the JVM's own, for whose locks the program's threads may wait on their way. A thread that
// has ended before its name was read is one, too: the program's threads stay.
var compilers = regexp.MustCompile(`C[12] CompilerThread|VM Thread|G1 |\?`)

// checkChains compares the sums by chain with what the program says. A chain may end early, and no other may be there.
func checkChains(t testing.TB, of map[string]time.Duration, told []string, thinned bool) {
	t.Helper()
	var all, early, wrong, waited time.Duration
	whole := map[string]time.Duration{} // by source
	for chain, d := range of {
		t.Logf("%12v  %s", d, chain)
		all += d
		source := ""
		for _, s := range []string{"source-a", "source-b", "main"} {
			if full := "stage-2 stage-1 " + s + " timer"; chain == full {
				source = s
			} else if strings.HasPrefix(full+" ", chain+" ") || compilers.MatchString(chain) {
				source = "early"
			}
		}
		switch source {
		case "":
			wrong += d
		case "early":
			early += d
		default:
			whole[source] += d
		}
	}
	for _, line := range told {
		var source string
		var nanos, letters int64
		fmt.Sscan(line, &source, &nanos, &letters)
		waited += time.Duration(nanos)
		t.Logf("%s: %d letters, %v; the recording: %v", source, letters, time.Duration(nanos), whole[source])
		if limit := nanos + nanos/50; int64(whole[source]) > limit && !thinned {
			t.Errorf("%s: %v, the program says %v", source, whole[source], time.Duration(nanos))
		}
	}
	t.Logf("whole %.2f %%, early %.2f %%, wrong %.2f %% of %v; the program says %v",
		100*float64(all-early-wrong)/float64(all), 100*float64(early)/float64(all), 100*float64(wrong)/float64(all), all,
		waited)
	if all == 0 || float64(wrong) > 0.01*float64(all) || float64(early) > 0.9*float64(all) {
		t.Error("wrong chains, or none")
	}
}
