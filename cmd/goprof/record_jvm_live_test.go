//go:build linux

package main

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"testing"
	"time"

	"goprof/testdata/jvmtest"
)

// TestJVMEvents: the file has as many collections as the JVM's own log within the same time, and together they took as
// long. Each of them is a safepoint, and lies within the recording. Their numbers are those of a counter of the JVM. It
// counts a young and a full collection of one safepoint as two, which have one number in the log.
func TestJVMEvents(t *testing.T) {
	t.Parallel()
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		if jdk.Version < 9 {
			t.Skip("its log has another form")
		}
		dir := t.TempDir()
		log, name := filepath.Join(dir, "gc.log"), filepath.Join(dir, "x.jfr")
		jvm := jvmtest.Start(t, jdk, "truth.Garbage", "-XX:+UseSerialGC", "-Xmx200m", "-Xlog:gc:file="+log+":time", "--",
			"sick", "10")
		from := time.Now()
		record(t, jvm.PID, name, "-d", "3", "--jvm-events")
		until := time.Now()
		all := printed(t, jdk, name, "jdk.GarbageCollection")
		if len(all) == 0 {
			t.Fatal("the file has no collection")
		}
		sort.Slice(all, func(i, j int) bool { return all[i].Start.Before(all[j].Start) })
		ours, longest, seen := 0.0, 0.0, map[int]bool{}
		for _, e := range all {
			if seen[e.GCID] {
				t.Errorf("collection %d is there twice", e.GCID)
			}
			seen[e.GCID] = true
			if e.Start.Before(from) || e.Start.After(until) {
				t.Errorf("collection %d began at %v, recorded from %v to %v", e.GCID, e.Start, from, until)
			}
			ours, longest = ours+e.seconds(t), max(longest, e.seconds(t))
		}
		// The log has the end of each pause. A reading comes up to 50 ms later. So the log may have more at both ends.
		const late = 100 * time.Millisecond
		last := all[len(all)-1].Start.Add(late + time.Duration(all[len(all)-1].seconds(t)*float64(time.Second)))
		first := all[0].Start.Add(-late)
		n, theirs := pausesOf(t, log, first, last)
		ends := 0.05 + float64(2*late)/float64(last.Sub(first))
		if math.Abs(float64(len(all)-n)) > 2+float64(n)*ends ||
			math.Abs(ours-theirs) > theirs*(ends+0.1)+2*longest+0.01 {
			t.Errorf("%d collections took %v s in the file, %d took %v s in the log", len(all), ours, n, theirs)
		}
		b := readJFR(t, name)
		for _, event := range []string{"jdk.GCPhasePause", "jdk.GCHeapSummary", "jdk.SafepointBegin", "jdk.SafepointEnd",
			"jdk.CompilerStatistics", "jdk.CodeCacheStatistics", "jdk.ClassLoadingStatistics", "jdk.CPULoad",
			"jdk.GCConfiguration", "jdk.GCHeapConfiguration", "jdk.CompilerConfiguration", "jdk.CodeCacheConfiguration"} {
			if b.events[event] == 0 {
				t.Errorf("no %s", event)
			}
		}
	})
}

// pausesOf are the pauses in a log between two moments, and how many seconds they took.
func pausesOf(t *testing.T, log string, from, until time.Time) (n int, seconds float64) {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\[(\S+)\] GC\(\d+\) Pause .* ([\d.]+)ms$`).FindAllSubmatch(text, -1) {
		at, err := time.Parse("2006-01-02T15:04:05.000-0700", string(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		if at.Before(from) || at.After(until) {
			continue
		}
		ms, _ := strconv.ParseFloat(string(m[2]), 64)
		n, seconds = n+1, seconds+ms/1000
	}
	return n, seconds
}

// printedEvent is an event as the JDK's command prints it.
type printedEvent struct {
	Start    time.Time `json:"startTime"`
	Duration string    `json:"duration"` // PT0.0051S
	GCID     int       `json:"gcId"`
}

func (e *printedEvent) seconds(t *testing.T) float64 {
	m := regexp.MustCompile(`^PT([\d.]+)S$`).FindStringSubmatch(e.Duration)
	if m == nil {
		t.Fatalf("duration %q", e.Duration)
	}
	s, _ := strconv.ParseFloat(m[1], 64)
	return s
}

// printed are the events of a type, as the JDK's command reads them.
func printed(t *testing.T, jdk jvmtest.JDK, file, event string) (list []printedEvent) {
	t.Helper()
	out, err := exec.Command(jdk.Tool("jfr"), "print", "--json", "--events", event, file).Output()
	if err != nil {
		t.Fatalf("jfr print: %v", err)
	}
	var all struct {
		Recording struct {
			Events []struct{ Values printedEvent }
		}
	}
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatal(err)
	}
	for _, e := range all.Recording.Events {
		list = append(list, e.Values)
	}
	return list
}
