//go:build linux

package jfr

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"goprof/profile"
	"goprof/testdata/jvmtest"
)

// Tests of how other tools read goprof's files, and how goprof reads theirs.

// needsJDK skips a test that starts JVMs in short mode.
func needsJDK(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts the JDK's own jfr command: not with -short")
	}
}

func writeFile(t *testing.T, name string, file []byte) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, file, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// printed is an event in the form of jfr print --json.
type printed struct {
	Type   string `json:"type"`
	Values struct {
		SampledThread, EventThread *struct {
			OSName, JavaName string
			OSThreadID       int `json:"osThreadId"`
			JavaThreadID     int64
			Virtual          bool
		}
		State      string
		StackTrace *struct {
			Truncated bool
			Frames    []struct {
				Method struct {
					Type struct{ Name string }
					Name string
				}
				LineNumber, BytecodeIndex int32
				Type                      string
			}
		}
		TimeSpan string
		Samples  int64
	} `json:"values"`
}

func print(t *testing.T, jdk jvmtest.JDK, file, events string) []printed {
	t.Helper()
	out := jvmtest.JFRTool(t, jdk, "print", "--json", "--stack-depth", "1000", "--events", events, file)
	var all struct {
		Recording struct{ Events []printed }
	}
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatalf("%v\n%.300s", err, out)
	}
	return all.Recording.Events
}

// TestJDKReadsOurs: the JDK's own command finds exactly the samples of goprof's files.
func TestJDKReadsOurs(t *testing.T) {
	needsJDK(t)
	cpu, wall := recording(t), wallRecording(t)
	cpuFile, wallFile := writeFile(t, "cpu.jfr", cpu), writeFile(t, "wall.jfr", wall)
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		if _, err := os.Stat(jdk.Tool("jfr")); err != nil {
			t.Skip("it has no jfr command")
		}
		summary := jvmtest.JFRTool(t, jdk, "summary", cpuFile)
		for event, n := range map[string]int{"jdk.ExecutionSample": 2495, "jdk.NativeMethodSample": 2505,
			"goprof.SampleDetail": 5000, "jdk.ThreadStart": 1, "jdk.ThreadEnd": 1, "goprof.Account": 1, "goprof.Note": 1,
			"jdk.JVMInformation": 3} {
			if !regexp.MustCompile(regexp.QuoteMeta(event) + " +" + strconv.Itoa(n) + " ").MatchString(summary) {
				t.Errorf("not %d of %s:\n%s", n, event, summary)
			}
		}
		samePrinted(t, cpu, print(t, jdk, cpuFile, "jdk.ExecutionSample,jdk.NativeMethodSample"))
		samePrinted(t, wall, print(t, jdk, wallFile, "profiler.WallClockSample"))
		if jdk.Version < 21 {
			return // older JDKs have no jfr view
		}
		for view, want := range map[string]string{
			"hot-methods":    `shop\.Price\.round\(\) +835 +33`,
			"native-methods": `libjvm\.G1ParTask::work\(unsigned int\)\(\) +835`,
			"thread-count":   `3 +1 +9 +5`,
		} {
			out := jvmtest.JFRTool(t, jdk, "view", "--width", "160", view, cpuFile)
			if !regexp.MustCompile(want).MatchString(out) {
				t.Errorf("%s has no %s:\n%s", view, want, out)
			}
		}
	})
}

// samePrinted compares the events with a stack in a file: those that goprof reads, and those that the JDK prints.
func samePrinted(t *testing.T, file []byte, theirs []printed) {
	t.Helper()
	ours := map[string]int{}
	eachEvent(t, bytes.NewReader(file), func(e *Event) {
		if strings.HasSuffix(e.Name, "Sample") {
			ours[describe(e)]++
		}
	})
	got := map[string]int{}
	for i := range theirs {
		got[theirs[i].describe()]++
	}
	if len(got) == 0 || !maps.Equal(ours, got) {
		t.Errorf("the JDK prints %d sorts of samples, we read %d", len(got), len(ours))
		for line, n := range got {
			if ours[line] != n {
				t.Logf("theirs %d, ours %d: %s", n, ours[line], line)
			}
		}
		for line, n := range ours {
			if got[line] == 0 {
				t.Logf("theirs none, ours %d: %s", n, line)
			}
		}
	}
}

// describe formats a sample as one line: event, thread, state, whether the stack is cut, and the Java frames with their
// lines.
func describe(e *Event) string {
	var b strings.Builder
	b.WriteString(e.Name + " ")
	if e.HasThread {
		b.WriteString(e.Thread.JavaName + " " + strconv.Itoa(e.Thread.TID))
	}
	b.WriteString(" " + e.State)
	if e.Stack == nil {
		return b.String()
	}
	if e.Stack.Truncated != profile.Whole {
		b.WriteString(" cut")
	}
	for _, f := range e.Stack.Frames {
		if f.Kind.Java() {
			b.WriteString(" " + f.Func.Name + ":" + strconv.Itoa(int(f.Line)) + "@" + strconv.Itoa(int(f.BCI)))
		} else {
			b.WriteString(" " + f.Func.Name)
		}
	}
	return b.String()
}

func (p *printed) describe() string {
	v, b := &p.Values, strings.Builder{}
	who := v.SampledThread
	if who == nil {
		who = v.EventThread
	}
	b.WriteString(p.Type + " ")
	if who != nil {
		b.WriteString(who.JavaName + " " + strconv.Itoa(who.OSThreadID))
	}
	b.WriteString(" " + v.State)
	if v.StackTrace == nil {
		return b.String()
	}
	if v.StackTrace.Truncated {
		b.WriteString(" cut")
	}
	for _, f := range v.StackTrace.Frames {
		switch {
		case f.Type == "C++" && strings.HasPrefix(f.Method.Name, truncatedBy):
		case f.Type == "C++":
			b.WriteString(" " + f.Method.Name)
		default:
			b.WriteString(" " + strings.ReplaceAll(f.Method.Type.Name, "/", ".") + "." + f.Method.Name)
			b.WriteString(":" + strconv.Itoa(int(max(f.LineNumber, 0))) + "@" + strconv.Itoa(int(f.BytecodeIndex)))
		}
	}
	return b.String()
}

// TestReadsJDK: in a recording by the JDK's own recorder, of a program that computes, allocates, waits and parks,
// goprof reads the same events and frames as the JDK's command prints.
func TestReadsJDK(t *testing.T) {
	needsJDK(t)
	jvmtest.ForDrawnJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		if _, err := os.Stat(jdk.Tool("jfr")); err != nil {
			t.Skip("it has no jfr command")
		}
		events := []string{"jdk.ExecutionSample", "jdk.NativeMethodSample", "jdk.ObjectAllocationInNewTLAB",
			"jdk.ObjectAllocationOutsideTLAB", "jdk.ObjectAllocationSample", "jdk.JavaMonitorEnter", "jdk.ThreadPark"}
		if jdk.Version >= 25 {
			events = append(events, "jdk.CPUTimeSample")
		}
		name := jvmtest.RecordJFR(t, jdk, events)
		theirs := map[string]map[string]int{}
		for _, p := range print(t, jdk, name, strings.Join(events, ",")) {
			if theirs[p.Type] == nil {
				theirs[p.Type] = map[string]int{}
			}
			theirs[p.Type][p.describe()]++
		}
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		ours := map[string]map[string]int{}
		r := eachEvent(t, file, func(e *Event) {
			if ours[e.Name] == nil {
				ours[e.Name] = map[string]int{}
			}
			ours[e.Name][describe(e)]++
			switch {
			case strings.HasPrefix(e.Name, "jdk.ObjectAllocation") && (e.Bytes <= 0 || e.Class == ""):
				t.Errorf("%s of %d bytes of class %q", e.Name, e.Bytes, e.Class)
			case e.Name == "jdk.ThreadPark" && e.Duration <= 0:
				t.Errorf("parked for %v", e.Duration)
			case e.Name == "jdk.CPUTimeSample" && e.CPU <= 0:
				t.Errorf("a sample of %v CPU time", e.CPU)
			}
		})
		for _, event := range events {
			n := 0
			for line, count := range theirs[event] {
				n += count
				if ours[event][line] != count {
					t.Errorf("theirs %d, ours %d: %.500s", count, ours[event][line], line)
				}
			}
			if len(ours[event]) != len(theirs[event]) {
				t.Errorf("%s: the JDK prints %d sorts, we read %d", event, len(theirs[event]), len(ours[event]))
			}
			t.Logf("%d of %s, of %d sorts, in %d chunks", n, event, len(theirs[event]), r.Chunks())
		}
		if len(theirs["jdk.ExecutionSample"]) == 0 {
			t.Error("no samples at all")
		}
	})
}
