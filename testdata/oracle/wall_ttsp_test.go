//go:build linux

package oracle

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// ttspSink keeps what was told of each look at a thread that keeps a safepoint waiting.
type ttspSink struct {
	allocatedSink
	looks []heldUp
}

type heldUp struct {
	at     int64
	thread string
	where  string
	span   time.Duration
}

func (s *ttspSink) Sample(sample *profile.Sample) {
	l := heldUp{at: sample.At.Ticks, thread: sample.Thread.JavaName, span: sample.Span}
	for i := range sample.Stack.Frames {
		l.where += sample.Stack.Frames[i].Func.Name + " "
	}
	s.looks = append(s.looks, l)
}

// unpolledOptions make C2 leave out the polls of a counted loop.
var unpolledOptions = []string{"-XX:+IgnoreUnrecognizedVMOptions", "-XX:-UseCountedLoopSafepoints",
	"-XX:LoopStripMiningIter=0"}

// TestTTSP: a thread that computes 30 ms without a poll is named in each safepoint, with the time that the
// JVM's own log says (before 13: the program). GOPROF_PROVE=1 asks for 100 safepoints of each JDK, else for 15.
func TestTTSP(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, counters := range []bool{false, true} {
			name := "symbols"
			if counters {
				name = "counters alone"
			}
			t.Run(name, func(t *testing.T) {
				again(t, func(t testing.TB) {
					if !testTTSP(t, jdk, counters) {
						t.Error("more than half of the safepoints are not seen, or without the loop")
					}
				})
			})
		}
	})
}

// testTTSP reports whether half of the safepoints are seen: on a starved machine goprof has no CPU in some of them.
func testTTSP(t testing.TB, jdk jvmtest.JDK, counters bool) bool {
	t.Helper()
	n := "15"
	if longForm {
		n = "100"
	}
	options, log := unpolledOptions, filepath.Join(t.TempDir(), "safepoints.log")
	if jdk.Version >= 13 { // before, its lines are others
		options = append([]string{"-Xlog:safepoint:file=" + log + ":timenanos"}, options...)
	}
	jvm := jvmtest.Start(fact(t), jdk, "truth.Unpolled", options...)
	defer jvm.Quit() // not beside the next try
	jvm.Command("compile")
	s, err := session.Attach(jvm.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.WatchSafepoints(); err != nil {
		t.Fatal(err)
	}
	if counters {
		s.WithoutSafepointSymbols()
	}
	ctx, stop := context.WithCancel(context.Background())
	visits := make(chan session.Visit)
	sink := &ttspSink{allocatedSink: allocatedSink{last: map[string]uint64{}}}
	ended := make(chan profile.Summary, 1)
	go func() {
		_, sum, err := s.Record(ctx, session.RecordOptions{Mode: session.TTSPMode, Interval: time.Millisecond, Depth: 2048,
			Sink: sink, Visits: visits, Weight: profile.WallTime})
		if err != nil {
			t.Error(err)
		}
		ended <- sum
	}()
	visits <- func(*profile.Profile, *profile.Summary) {}
	lines := jvm.Command("asks " + n + " 30")
	stop()
	truths := readTTSPTruth(t, lines)
	if jdk.Version >= 13 {
		logged(t, log, truths)
	}
	return judgeTTSP(t, <-ended, sink, truths, jdk)
}

// ttspTruth is one safepoint: when the program asked for it and when the loop ended, by its clock, and for how long the
// JVM says that it waited for the threads. The two differ where the program waited for a CPU before the JVM began.
type ttspTruth struct {
	asked, ended int64
	took         time.Duration
}

func readTTSPTruth(t testing.TB, lines []string) (all []ttspTruth) {
	t.Helper()
	for _, line := range lines {
		var x ttspTruth
		if n, _ := fmt.Sscan(line, &x.asked, &x.ended); n == 2 {
			x.took = time.Duration(x.ended - x.asked)
			all = append(all, x)
		}
	}
	if len(all) == 0 {
		t.Fatalf("the program said %q", lines)
	}
	return all
}

// reaching is what HotSpot logs at the end of a safepoint (SafepointTracing::end): the moment, by the clock of
// System.nanoTime(), and for how long it waited for the threads.
var reaching = regexp.MustCompile(`\[(\d+)ns\] Safepoint ".*Reaching safepoint: +(\d+) ns`)

// logged puts in what the JVM's own log says of the safepoints. The line of the last one may come late.
func logged(t testing.TB, file string, truths []ttspTruth) {
	t.Helper()
	for deadline := time.Now().Add(jvmtest.Slow(time.Minute)); ; time.Sleep(10 * time.Millisecond) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n := matchLogged(reaching.FindAllStringSubmatch(string(text), -1), truths)
		if n == len(truths) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the JVM has logged safepoints for %d of the %d loops\n%s", n, len(truths), text)
		}
	}
}

// matchLogged finds the safepoint that waited for each loop: the first one that ended after the loop. It need not be
// the one that the program asked for. The JVM has others, also of the same operation. It returns for how many loops
// there is one.
func matchLogged(lines [][]string, truths []ttspTruth) int {
	for i := range truths {
		for ; ; lines = lines[1:] {
			if len(lines) == 0 {
				return i
			}
			at, _ := strconv.ParseInt(lines[0][1], 10, 64)
			if at >= truths[i].ended {
				break
			}
		}
		ns, _ := strconv.ParseInt(lines[0][2], 10, 64)
		truths[i].took, lines = time.Duration(ns), lines[1:]
	}
	return len(truths)
}

// TestMatchLogged: safepoints that the program has not asked for change nothing.
func TestMatchLogged(t *testing.T) {
	log := `[90ns] Safepoint "ICBufferFull", Time since last: 1 ns, Reaching safepoint: 1 ns, Total: 9 ns
[125ns] Safepoint "ThreadDump", Time since last: 1 ns, Reaching safepoint: 20 ns, At safepoint: 1 ns, Total: 22 ns
[130ns] Safepoint "ThreadDump", Time since last: 1 ns, Reaching safepoint: 2 ns, At safepoint: 1 ns, Total: 3 ns
[226ns] Safepoint "Cleanup", Time since last: 1 ns, Reaching safepoint: 21 ns, At safepoint: 1 ns, Total: 23 ns
[228ns] Safepoint "ThreadDump", Time since last: 1 ns, Reaching safepoint: 1 ns, At safepoint: 1 ns, Total: 2 ns
`
	truths := []ttspTruth{{100, 120, 0}, {200, 222, 0}, {300, 320, 0}}
	if n := matchLogged(reaching.FindAllStringSubmatch(log, -1), truths); n != 2 {
		t.Errorf("%d of the loops have a safepoint, not 2", n)
	}
	if truths[0].took != 20 || truths[1].took != 21 || truths[2].took != 0 {
		t.Errorf("%v", truths)
	}
}

// judgeTTSP holds what was told against what the program says.
func judgeTTSP(t testing.TB, sum profile.Summary, sink *ttspSink, all []ttspTruth, jdk jvmtest.JDK) (seen bool) {
	t.Helper()
	if sum.Safepoints == nil {
		t.Fatalf("%+v", sum)
	}
	var off []time.Duration
	near, clock, unseen, wrong := 0, 0, 0, 0
	for i, x := range all {
		next := x.ended + int64(time.Second)
		if i+1 < len(all) {
			next = all[i+1].asked
		}
		told, where := time.Duration(0), ""
		for _, l := range sink.looks {
			if l.thread == "stubborn" && l.at >= x.asked-int64(time.Millisecond) && l.at < next-int64(time.Millisecond) {
				told, where = told+l.span, where+l.where
			}
		}
		if told == 0 {
			unseen++
			continue
		}
		if !strings.Contains(where, "truth.Unpolled.unpolled") {
			wrong++
		}
		byClock := time.Duration(x.ended - x.asked)
		if (told - byClock).Abs() <= 2*time.Millisecond {
			clock++
		}
		d := (told - x.took).Abs()
		if off = append(off, d); d <= 2*time.Millisecond {
			near++
			continue
		}
		t.Logf("safepoint %d: %v told, the JVM says %v, the program %v", i, told, x.took, byClock)
	}
	if slices.Sort(off); len(off) == 0 {
		t.Logf("%v: no safepoint of %d was seen: %+v, %+v", jdk, len(all), *sum.Safepoints, *sum.Looks)
		return false
	}
	t.Logf("%v: %d safepoints, %d not seen, %d without the loop, %d within 2 ms of what the JVM says "+
		"(median %v off, worst %v), %d of what the program says; the JVM waited for %v, looks have %v, %d lost",
		jdk, len(all), unseen, wrong, near, off[len(off)/2], off[len(off)-1], clock,
		sum.Safepoints.Took, sum.Looks.Time, sum.Lost)
	if longForm {
		if unseen+wrong > 0 || near < len(all) {
			t.Errorf("%d of %d not seen, %d without the loop, only %d within 2 ms", unseen, len(all), wrong, near)
		}
	}
	// Some thread is late for as long as the VM waits, and none for longer. Beside other tests several may be late.
	sp, ours := sum.Safepoints, time.Duration(0)
	for _, l := range sink.looks {
		if l.thread == "stubborn" {
			ours += l.span
		}
	}
	// Where goprof had no CPU between two of its readings, that time may be in one of the two alone.
	if sum.Lost == 0 && (sum.Looks.Time < sp.SeenFor*3/4-sum.Gap || ours > sp.SeenFor*5/4+sum.Gap) {
		t.Errorf("looks have %v, %v of them of one thread, the JVM waited for %v (%+v)", sum.Looks.Time, ours,
			sp.SeenFor, *sp)
	}
	if !sp.Exact {
		fact(t).Errorf("not exact: %+v", *sp)
	}
	return unseen+wrong <= len(all)/2
}
