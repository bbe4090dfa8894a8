//go:build linux

package oracle

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/sampler/events"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// findEvent finds an event, or skips the test where the machine permits none, or the JDK has no symbols.
func findEvent(t testing.TB, s *session.Session, name string, every uint64) *session.EventPlan {
	t.Helper()
	if err := events.TryProbes(); err != nil {
		t.Skipf("this machine permits no probes: %v", err)
	}
	plan, err := s.FindEvent(name, every)
	var bad *session.EventError
	if errors.As(err, &bad) && strings.Contains(bad.Remedy, ".symtab") {
		t.Skipf("this libjvm.so does not say where its functions are: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(plan.Close)
	return plan
}

// recordEvent records an event while the program does something: from when the probes are there until it has.
func recordEvent(t testing.TB, s *session.Session, plan *session.EventPlan, do func()) (*profile.Profile,
	profile.Summary) {
	t.Helper()
	return recordEventInto(t, s, plan, nil, do)
}

// recordEventInto gives each sample to a sink, too.
func recordEventInto(t testing.TB, s *session.Session, plan *session.EventPlan, sink session.Sink,
	do func()) (*profile.Profile, profile.Summary) {
	t.Helper()
	visits := make(chan session.Visit)
	ctx, cancel := context.WithCancel(context.Background())
	type result struct {
		p   *profile.Profile
		sum profile.Summary
		err error
	}
	done := make(chan result, 1)
	go func() {
		p, sum, err := s.Record(ctx, session.RecordOptions{Engine: session.PerfEngine, Event: plan, Visits: visits,
			Weight: plan.Unit, Sink: sink})
		done <- result{p, sum, err}
	}()
	await := func(visit session.Visit) {
		select {
		case visits <- visit:
		case r := <-done:
			t.Fatalf("the recording has ended: %v", r.err)
		}
	}
	for set := false; !set; { // the engine answers when all is open
		seen := make(chan bool)
		await(func(_ *profile.Profile, sum *profile.Summary) { seen <- len(sum.Events) > 0 })
		set = <-seen
	}
	do()
	cancel()
	r := <-done
	if r.err != nil {
		t.Fatal(r.err)
	}
	return r.p, r.sum
}

// byLeaf is what stacks with a leaf are counted for, and those that are lost.
func byLeaf(p *profile.Profile, leaf string) (n int64) {
	p.EachLine(func(f *profile.Func, _ profile.Kind) string { return f.Name }, func(path []string, count int64) {
		if path[len(path)-1] == leaf {
			n += count
		}
	})
	return n
}

// TestEventCounts: what happens a thousand times a second is counted to the piece.
func TestEventCounts(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		// Where code is made while an event waits for its walk, that is lost as stale. So all is compiled before, which
		// -Xbatch does at once.
		jvm := jvmtest.Start(t, jdk, "truth.Happenings", "-Xbatch")
		s := attach(t, jvm.PID)
		for _, c := range []struct {
			event, command, leaf string
			times                int
		}{
			{"exceptions", "exceptions", "truth.Happenings$Failure", envNumber("GOPROF_EVENT_TIMES", 1000)},
			{"class-load", "classes", "truth.Happenings$Tiny", 200},
			{"thread-start", "threads", "truth.Happenings$Started", 200},
			{"gc-request", "gcs", "", 5},
			{"usdt:hotspot:gc-begin", "gcs", "", 5},
		} {
			t.Run(c.event, func(t *testing.T) {
				plan := findEvent(t, s, c.event, 0)
				jvm.Command(fmt.Sprintf("%s %d 1000000", c.command, 5*c.times))
				// Without a CPU for some tenths of a second goprof misses what the kernel's rings have no room for, and what
				// it walks then may be stale. It is told each time, and little in one of some recordings.
				unseen := int64(100)
				for tries := 0; tries < 5 && unseen > 1; tries++ {
					p, sum := recordEvent(t, s, plan, func() { jvm.Command(fmt.Sprintf("%s %d 1000", c.command, c.times)) })
					unseen = checkEventCount(t, p, &sum, c.leaf, int64(c.times))
				}
				if unseen > 1 {
					t.Errorf("%d %% are missed or lost", unseen)
				}
			})
		}
	})
}

// TestEventFunctions: functions that are named by hand, of C and of C++, and the operations that threads ask the VM
// for, are seen as often as the program has them called, at least.
func TestEventFunctions(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Happenings")
		s := attach(t, jvm.PID)
		leaves := map[string]string{"safepoint": "VM_", "libjvm:VMThread::execute": "", "libjvm:JVM_GC": "",
			"libc:write": ""}
		for event, leaf := range leaves {
			t.Run(event, func(t *testing.T) {
				plan, times := findEvent(t, s, event, 0), 5
				p, sum := recordEvent(t, s, plan, func() {
					for range times {
						jvm.Command("gcs 1 1000") // which is answered in a line
					}
				})
				e, seen := sum.Events[0], int64(0)
				name := func(f *profile.Func, _ profile.Kind) string { return f.Name }
				p.EachLine(name, func(path []string, n int64) {
					if strings.HasPrefix(path[len(path)-1], leaf) {
						seen += n
					}
				})
				if e.Hits < int64(times) || seen+sum.Lost+e.Missed < int64(times) {
					t.Errorf("%+v, %d of it %q, lost %v", e, seen, leaf, sum.LostBy)
				}
			})
		}
	})
}

// checkEventCount holds what is counted against what the program did, and returns how many hits in a hundred became no
// sample.
func checkEventCount(t *testing.T, p *profile.Profile, sum *profile.Summary, leaf string, times int64) (unseen int64) {
	t.Helper()
	e := sum.Events[0]
	t.Logf("%d hits, %d taken, %d missed, lost %v", e.Hits, e.Taken, e.Missed, sum.LostBy)
	if e.Hits < times || e.Hits != e.Taken+e.Missed || e.Taken != sum.Samples+sum.Lost {
		t.Errorf("%+v, %d samples, %d lost", e, sum.Samples, sum.Lost)
	}
	if leaf == "" {
		if e.Hits >= 2*times { // a JVM may collect by itself, too
			t.Errorf("%d hits, there were %d", e.Hits, times)
		}
		return 0
	}
	if n := byLeaf(p, leaf); n > times || n+sum.Lost+e.Missed < times {
		t.Errorf("%d times %s, there were %d; %d lost", n, leaf, times, sum.Lost)
	}
	return (e.Missed + sum.Lost) * 100 / max(e.Hits, 1)
}

// allocPlaces are the methods of truth.Allocating, and what part of all bytes each allocates.
var allocPlaces = map[string]float64{"bytes": 0.50, "longs": 0.25, "texts": 0.15, "holders": 0.10}

// allocHeaps are collectors, as far as a JDK has them.
var allocHeaps = []string{"-XX:+UseG1GC", "-XX:+UseParallelGC", "-XX:+UseSerialGC", "-XX:+UseZGC",
	"-XX:+UseShenandoahGC"}

// smallBuffers: with buffers of 20 KB four of ten objects that do not fit are put outside (sampler/events/buffer.go).
const smallBuffers = "-XX:+UseSerialGC -XX:-ResizeTLAB -XX:TLABSize=20k"

// TestAlloc: a program allocates known amounts at four places. The shares are as near as those of a perfect sampler
// whose samples stand for as much, and the sum is what the JVM itself has counted.
func TestAlloc(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		heaps := allocHeaps[:1]
		if longForm {
			heaps = allocHeaps
		}
		for _, heap := range append(heaps[:len(heaps):len(heaps)], smallBuffers) {
			if heap == "-XX:+UseZGC" && jdk.Version < 15 || heap == "-XX:+UseShenandoahGC" && jdk.Version < 15 {
				continue
			}
			name := strings.TrimPrefix(heap, "-XX:+Use")
			if heap == smallBuffers {
				name = "small-buffers"
			}
			t.Run(name, func(t *testing.T) {
				line := append(strings.Fields(heap), "-Xmx256m", "--", "200000000", "2")
				jvm := jvmtest.Start(t, jdk, "truth.Allocating", line...)
				again(t, func(t testing.TB) { allocRun(t, jvm, heap) })
			})
		}
	})
}

// allocRun judges the mean of some recordings: one alone may be off by chance.
func allocRun(t testing.TB, jvm *jvmtest.JVM, heap string) {
	s := attach(t, jvm.PID)
	rounds, worst := 1, 3.0
	if longForm {
		rounds, worst = 8, 1.5
	} else if heap == smallBuffers {
		worst = 5 // hits that stand for their own amounts: 8 and more
	}
	ratio, equal, samples, ours, theirs, most := 0.0, 0.0, 0, 0.0, 0.0, 0.0
	for range rounds {
		begin := allocated(t, jvm)
		distance, weights, bytes, counted := allocOnce(t, jvm, s)
		most += float64(allocated(t, jvm) - begin)
		n, like := len(weights), alike(weights)
		perfect := perfectDistance(allocPlaces, like)
		equal += distance / perfectDistance(allocPlaces, n) / float64(rounds)
		t.Logf("%d samples, worth %d that stand for the same; distance %.4f, a perfect sampler's %.4f; %.0f bytes, the "+
			"JVM says %.0f", n, like, distance, perfect, bytes, counted)
		ratio += distance / perfect / float64(rounds)
		samples, ours, theirs = samples+n, ours+bytes, theirs+counted
	}
	t.Logf("%.2f times a perfect sampler's distance (%.2f of one whose samples all stand for the same), %+.2f %% of the "+
		"bytes (from before until after: %+.2f %%)", ratio, equal, 100*(ours/theirs-1), 100*(ours/most-1))
	if ratio > worst {
		t.Errorf("%.2f times a perfect sampler's distance, more than %.1f", ratio, worst)
	}
	if longForm {
		most = theirs
	}
	// The program goes on while a recording begins and ends, for as long as that takes.
	off := 0.02 + 3/math.Sqrt(float64(max(samples, 1)))
	if heap == smallBuffers {
		// HotSpot keeps the end of a buffer free (gc/shared/threadLocalAllocBuffer.hpp, end_reserve), and throws away a
		// rest of less than a 64th: nearly 4 % of 20 KB.
		off += 0.04
	}
	if ours < theirs*(1-off) || ours > most*(1+off) {
		t.Errorf("%.0f bytes in samples, the JVM has counted %.0f, and %.0f from before until after", ours, theirs, most)
	}
}

// allocPlace is the place of truth.Allocating to which a stack leads.
func allocPlace(path []string) string {
	for _, name := range path {
		if place, ok := strings.CutPrefix(name, "truth.Allocating."); ok && allocPlaces[place] > 0 {
			return place
		}
	}
	return ""
}

// weightSink keeps how many bytes each sample stands for.
type weightSink struct {
	allocatedSink
	weights []float64
}

func (s *weightSink) Sample(sample *profile.Sample) {
	s.weights = append(s.weights, float64(sample.Bytes))
}

// alike is how many samples that all stand for the same tell as much as these: Kish's effective number.
func alike(weights []float64) int {
	sum, squares := 0.0, 0.0
	for _, w := range weights {
		sum, squares = sum+w, squares+w*w
	}
	return int(sum * sum / max(squares, 1))
}

// allocOnce is one recording: how far its shares are from the true ones, what each sample stands for, and the bytes
// that all stand for beside those that the JVM has counted.
func allocOnce(t testing.TB, jvm *jvmtest.JVM, s *session.Session) (distance float64, weights []float64, bytes,
	counted float64) {
	t.Helper()
	plan := findEvent(t, s, "alloc", uint64(envNumber("GOPROF_ALLOC_EVERY", 128<<10)))
	defer plan.Close()
	var before, after int64
	sink := &weightSink{allocatedSink: allocatedSink{last: map[string]uint64{}}}
	p, _ := recordEventInto(t, s, plan, sink, func() {
		before = allocated(t, jvm)
		time.Sleep(time.Duration(envNumber("GOPROF_ALLOC_SECONDS", 2)) * time.Second)
		after = allocated(t, jvm)
	})
	at := map[string]float64{}
	p.EachLine(func(f *profile.Func, _ profile.Kind) string { return f.Name }, func(path []string, n int64) {
		if place := allocPlace(path); place != "" {
			at[place] += float64(n)
			bytes += float64(n)
		}
	})
	for place, share := range allocPlaces {
		distance += math.Abs(at[place]/max(bytes, 1)-share) / 2
	}
	return distance, sink.weights, bytes, float64(after - before)
}

func allocated(t testing.TB, jvm *jvmtest.JVM) int64 { return number(t, jvm, "allocated") }

// number asks a program for one.
func number(t testing.TB, jvm *jvmtest.JVM, command string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(jvm.Command(command)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
