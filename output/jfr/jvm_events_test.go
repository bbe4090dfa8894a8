//go:build linux

package jfr

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/testdata/jvmtest"
)

// jvmEventsFile is a file with a JVM's counters, in several chunks.
func jvmEventsFile(t *testing.T) []byte {
	t.Helper()
	var file bytes.Buffer
	w := NewWriter(&file, Options{})
	at := func(ms int64) profile.Instant {
		return profile.Instant{Wall: 1_790_000_000_000_000_000 + ms*1e6, Ticks: 1e9 + ms*1e6}
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	w.SetConfiguration(Configuration{Young: "G1New", Old: "G1Old", Parallel: 2})
	for i := range int64(2) {
		check(w.Collection(at(1000*i), Collection{Number: i + 1, Name: "G1New", Cause: "G1 Evacuation Pause",
			Pause: "GC Pause", Length: 5 * time.Millisecond, Young: true}))
		check(w.Collection(at(1000*i+10), Collection{Number: i + 1, Pause: "GC Pause", Length: time.Millisecond, Part: true}))
		check(w.Collection(at(1000*i+20), Collection{Number: i + 1, Name: "Shenandoah", Length: time.Millisecond}))
		check(w.Heap(at(1000*i+30), i+1, 100, 200, 300))
		check(w.Safepoint(at(1000*i+40), 7+i, time.Microsecond, time.Millisecond))
		check(w.Compiled(at(1000*i+50), Compiled{Methods: 1 << 40, OnStack: 2}))
		check(w.CodeHeap(at(1000*i+60), "CodeCache", 5, 1))
		check(w.Classes(at(1000*i+70), 1<<63, 2))
		check(w.CPULoad(at(1000*i+80), 0.25, 7, -1))
		check(w.Flush(at(1000*i + 90)))
	}
	check(w.Close(at(3000)))
	return file.Bytes()
}

// TestJVMEventsRead: the JVM's counters are read as they were written, in each chunk.
func TestJVMEventsRead(t *testing.T) {
	file := jvmEventsFile(t)
	counts := map[string]int{}
	r := NewReader(bytes.NewReader(file), int64(len(file)), func(string, bool) bool { return true })
	for {
		e, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		counts[e.Name]++
		if e.Name == "jdk.GarbageCollection" && e.Duration == 5*time.Millisecond && e.At.Wall%1e9 != 0 {
			t.Errorf("a collection began at %v", e.At)
		}
	}
	for name, n := range map[string]int{"jdk.GarbageCollection": 4, "jdk.YoungGarbageCollection": 2, "jdk.GCPhasePause": 4,
		"jdk.OldGarbageCollection": 0, "jdk.GCHeapSummary": 2, "jdk.SafepointBegin": 2, "jdk.SafepointEnd": 2,
		"jdk.CompilerStatistics": 2, "jdk.CodeCacheStatistics": 2, "jdk.ClassLoadingStatistics": 2, "jdk.CPULoad": 2} {
		if counts[name] != n {
			t.Errorf("%d of %s, want %d", counts[name], name, n)
		}
	}
	if counts["jdk.GCConfiguration"] < 2 {
		t.Errorf("%d configurations in at least two chunks", counts["jdk.GCConfiguration"])
	}
}

// TestJMCRulesOfJVMEvents: JMC reads these events, and its rules give results for them.
func TestJMCRulesOfJVMEvents(t *testing.T) {
	jars, jdk := jvmtest.Readers(t)
	out := jdk.Java(t, "-cp", filepath.Join(jars, "*"), "../../testdata/readers/ReadWithJMC.java",
		writeFile(t, "jvm.jfr", jvmEventsFile(t)))
	for _, line := range []string{"4 events jdk.GarbageCollection", "2 events jdk.CPULoad", "2 events jdk.GCHeapSummary"} {
		if !strings.Contains(out, line) {
			t.Errorf("no %q in\n%s", line, out)
		}
	}
	for _, rule := range []string{"GcPauseRatio", "HighJvmCpu", "FullGc", "SystemGc"} {
		if !strings.Contains(out, "rule "+rule+" ") || strings.Contains(out, "rule "+rule+" NA") {
			t.Errorf("no answer of the rule %s", rule)
		}
	}
}

// TestVDSOIsNoArray: JMC reads a class that begins with a bracket as an array.
func TestVDSOIsNoArray(t *testing.T) {
	class, name, source := split(&profile.Func{Name: "clock_gettime", Module: "[vdso]"}, nativeCode)
	if class != "vdso" || name != "clock_gettime" || source != "[vdso]" {
		t.Errorf("%q, %q, %q", class, name, source)
	}
}
