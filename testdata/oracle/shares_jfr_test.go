//go:build linux

package oracle

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/sampler/look"
	"goprof/testdata/jvmtest"
)

// TestSharesBesideJFR compares with the JDK's own profiler: both watch the same run of truth.Shares
// at the same time, and goprof must be nearer to the truth. It takes a minute for each JDK, and runs
// with GOPROF_PROVE=1 only (make prove).
func TestSharesBesideJFR(t *testing.T) {
	if os.Getenv("GOPROF_PROVE") == "" {
		t.Skip("a comparison that takes minutes: set GOPROF_PROVE=1")
	}
	const samples = 30_000
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Shares", "-Djava.io.tmpdir="+t.TempDir(), "--", "1")
		s := attach(t, jvm.PID)
		s.Walker.Warm()
		tids := threadsCalled(t, s, "shares-")
		file := filepath.Join(t.TempDir(), "shares.jfr")
		jcmd(t, jdk, jvm.PID, "JFR.start", "name=shares", "settings="+jfrSettings(t, jdk))
		jvm.Command("mark")
		seen := newShareCount()
		sample(t, s, time.Millisecond, samples, func(snap *look.Look, st *profile.Stack) {
			if tids[snap.TID] {
				seen.add(st)
			}
		})
		truth := trueShares(t, jvm)
		jcmd(t, jdk, jvm.PID, "JFR.stop", "name=shares", "filename="+file)
		ours := seen.distance(truth)
		t.Logf("goprof: %d samples, %.1f %% of them misplaced\n%s", seen.samples, 100*ours, seen.table(truth))
		for name, count := range jfrShares(t, jdk, file) {
			theirs := count.distance(truth)
			t.Logf("%s: %d samples, %.1f %% of them misplaced\n%s", name, count.samples, 100*theirs, count.table(truth))
			if count.samples > 100 && theirs < ours {
				t.Errorf("%s is nearer to the truth: %.2f %% misplaced, goprof %.2f %%", name, 100*theirs, 100*ours)
			}
		}
	})
}

// jfrEvents are how JFR samples: by wall clock, Java and native code apart, and since JDK 25 by
// CPU time, too.
var jfrEvents = map[string]string{"jdk.ExecutionSample": "period", "jdk.NativeMethodSample": "period",
	"jdk.CPUTimeSample": "throttle"}

// jfrSettings makes a file by which JFR samples as often as it can.
func jfrSettings(t *testing.T, jdk jvmtest.JDK) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><configuration version="2.0">`)
	for event, setting := range jfrEvents {
		value := "1 ms"
		if setting == "throttle" {
			if jdk.Version < 25 {
				continue
			}
		}
		b.WriteString(`<event name="` + event + `"><setting name="enabled">true</setting><setting name="` + setting + `">` +
			value + `</setting></event>`)
	}
	b.WriteString(`</configuration>`)
	name := filepath.Join(t.TempDir(), "samples.jfc")
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func jcmd(t *testing.T, jdk jvmtest.JDK, pid int, command ...string) {
	t.Helper()
	args := append([]string{strconv.Itoa(pid)}, command...)
	for try := 1; ; try++ {
		out, err := exec.Command(filepath.Join(jdk.Home, "bin", "jcmd"), args...).CombinedOutput()
		if err == nil {
			return
		}
		// The JVM had no CPU to answer within ten seconds: it has heard no command yet.
		if try == 5 || !strings.Contains(string(out), "AttachNotSupportedException") {
			t.Fatalf("jcmd %q: %v\n%s", args, err, out)
		}
	}
}

// jfrShares counts a recording's samples by kind. The Java and the native ones belong together: one
// thread is in one or the other.
func jfrShares(t *testing.T, jdk jvmtest.JDK, file string) map[string]*shareCount {
	t.Helper()
	jfr := exec.Command(filepath.Join(jdk.Home, "bin", "jfr"), "print", "--json", "--stack-depth", "64",
		"--events", "ExecutionSample,NativeMethodSample,CPUTimeSample", file)
	out, err := jfr.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := jfr.Start(); err != nil {
		t.Fatal(err)
	}
	counts := map[string]*shareCount{}
	for _, e := range readJFR(t, out) {
		name := "JFR"
		if e.Type == "jdk.CPUTimeSample" {
			name = "JFR by CPU time"
		}
		thread := e.Values.SampledThread
		if thread == nil {
			thread = e.Values.EventThread
		}
		if thread == nil || !strings.HasPrefix(thread.JavaName, "shares-") {
			continue
		}
		if counts[name] == nil {
			counts[name] = newShareCount()
		}
		counts[name].add(e.stack())
	}
	if err := jfr.Wait(); err != nil {
		t.Fatalf("jfr print: %v", err)
	}
	if counts["JFR"] == nil {
		t.Fatal("JFR has no sample")
	}
	return counts
}

// jfrEvent is as much of an event in the output of "jfr print --json" as is needed.
type jfrEvent struct {
	Type   string
	Values struct {
		SampledThread, EventThread *struct{ JavaName string }
		StackTrace                 *struct {
			Frames []struct {
				Method struct {
					Name string
					Type struct{ Name string }
				}
			}
		}
	}
}

func readJFR(t *testing.T, r io.Reader) []jfrEvent {
	t.Helper()
	var all struct{ Recording struct{ Events []jfrEvent } }
	if err := json.NewDecoder(r).Decode(&all); err != nil {
		t.Fatalf("jfr print: %v", err)
	}
	return all.Recording.Events
}

// stack is what of the event's stack counts here: the names.
func (e *jfrEvent) stack() *profile.Stack {
	var st profile.Stack
	if e.Values.StackTrace == nil {
		return &st
	}
	for _, f := range e.Values.StackTrace.Frames {
		class := strings.ReplaceAll(f.Method.Type.Name, "/", ".")
		st.Frames = append(st.Frames, profile.Frame{Func: &profile.Func{Name: class + "." + f.Method.Name}})
	}
	return &st
}
