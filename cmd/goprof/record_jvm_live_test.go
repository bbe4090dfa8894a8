//go:build linux

package main

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"goprof/testdata/jvmtest"
)

// TestJVMEvents: the JVM's own log has each collection that the file has, none is missing between the first and the
// last, and together they took as long. Each of them is a safepoint, and lies within the recording.
func TestJVMEvents(t *testing.T) {
	t.Parallel()
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		if jdk.Version < 9 {
			t.Skip("its log has another form")
		}
		dir := t.TempDir()
		log, name := filepath.Join(dir, "gc.log"), filepath.Join(dir, "x.jfr")
		jvm := jvmtest.Start(t, jdk, "truth.Garbage", "-XX:+UseSerialGC", "-Xmx200m", "-Xlog:gc:file="+log, "--", "sick",
			"10")
		from := time.Now()
		record(t, jvm.PID, name, "-d", "3", "--jvm-events")
		until := time.Now()
		logged := pausesOf(t, log)
		last, ours, theirs := -1, 0.0, 0.0
		for _, e := range printed(t, jdk, name, "jdk.GarbageCollection") {
			id := e.GCID - 1 // the log counts from 0
			if last >= 0 && id != last+1 {
				t.Errorf("collection %d comes behind %d", id, last)
			}
			if logged[id] == 0 {
				t.Errorf("the log has no collection %d", id)
			}
			if e.Start.Before(from) || e.Start.After(until) {
				t.Errorf("collection %d began at %v, recorded from %v to %v", id, e.Start, from, until)
			}
			last = id
			ours, theirs = ours+e.seconds(t), theirs+logged[id]
		}
		if last < 0 {
			t.Fatal("the file has no collection")
		}
		if math.Abs(ours-theirs) > 0.1*theirs+0.005 {
			t.Errorf("collections took %v s in the file, %v s in the log", ours, theirs)
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

// pausesOf are the seconds of each collection of a log.
func pausesOf(t *testing.T, log string) (seconds map[int]float64) {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	seconds = map[int]float64{}
	for _, m := range regexp.MustCompile(`GC\((\d+)\) Pause .* ([\d.]+)ms`).FindAllSubmatch(text, -1) {
		id, _ := strconv.Atoi(string(m[1]))
		ms, _ := strconv.ParseFloat(string(m[2]), 64)
		seconds[id] += ms / 1000
	}
	return seconds
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
