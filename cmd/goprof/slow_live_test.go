//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	machine "goprof/testdata/host"
	"goprof/testdata/jvmtest"
)

// TestSlowVirtual: the same of virtual threads, parked and mounted.
func TestSlowVirtual(t *testing.T) {
	jdks := jvmtest.JDKs(t)
	jdk := jdks[len(jdks)-1]
	if jdk.Version < 24 {
		t.Skipf("%v: before 24 a virtual thread that waits for a monitor keeps its carrier", jdk)
	}
	jvm := jvmtest.Start(t, jdk, "truth.SlowRequests", "-Xmx64m", "-Dvirtual=true")
	out, err := exec.Command("goprof", "slow", fmt.Sprint(jvm.PID), "-d", "6s", "--per", "SlowRequests[.]handle$",
		"--over", "450ms").Output()
	held := regexp.MustCompile(`(?m)^ +\S+  SlowRequests.enter \(blocked\), java.lang.Object held by virtual ` +
		`thread #\d+ "holder"`)
	if err != nil || !held.Match(out) {
		t.Errorf("%v %s", err, out)
	}
}

// TestSlow: the slowest requests of a JVM, and of a file, are those that wait for a lock, and that is said. A JVM
// without traces gets a line that says so.
func TestSlow(t *testing.T) {
	jvm := jvmtest.Start(t, jvmtest.JDKs(t)[0], "truth.SlowRequests", "-Xmx64m")
	file := filepath.Join(t.TempDir(), "x.jfr")
	if code, told := runGoprof(t, "record", fmt.Sprint(jvm.PID), "-d", "4s", "--mode", "wall", "--rate", "50", "-o", file,
		"-q"); code != 0 {
		t.Fatal(told)
	}
	for _, args := range [][]string{{fmt.Sprint(jvm.PID), "-d", "4s"}, {file}} {
		out, err := exec.Command("goprof", append(append([]string{"slow"}, args...), "--per", "SlowRequests[.]handle$",
			"--json", "--over", "300ms")...).Output()
		if err != nil {
			t.Fatal(args, err)
		}
		var r struct {
			Seen int
			Slow []struct {
				Thread  string
				Seconds float64
				Parts   []struct {
					What   string
					HeldBy []struct{ Lock, Thread string } `json:"held_by"`
					Peers  []struct{ Peer string }
				}
			}
			More []struct{ What string } `json:"slow_ones_spend_more_in"`
		}
		if err := json.Unmarshal(out, &r); err != nil {
			t.Fatal(err)
		}
		if len(r.Slow) == 0 || len(r.Slow) >= r.Seen || len(r.More) == 0 {
			t.Fatalf("%s: %+v", args, r)
		}
		held, calls, called := 0, 0, 0
		for _, s := range r.Slow {
			what := s.Parts[0].What
			if strings.HasSuffix(what, " (runnable)") {
				continue // the machine is busy
			}
			if s.Seconds <= (300*time.Millisecond).Seconds() || !strings.Contains(s.Thread, "server-") ||
				what != "SlowRequests.enter (blocked)" && what != "SlowRequests.query (sleeping)" &&
					what != "SlowRequests.call (socket)" {
				t.Errorf("%s: %+v", args, s)
			}
			if what == "SlowRequests.call (socket)" {
				calls++
			}
			for _, p := range s.Parts[0].Peers {
				called++
				if what != "SlowRequests.call (socket)" || !strings.HasPrefix(p.Peer, "127.0.0.1:") {
					t.Errorf("%s: %+v", args, s)
				}
			}
			for _, h := range s.Parts[0].HeldBy {
				held++
				if h.Lock != "java.lang.Object" || !strings.HasPrefix(h.Thread, `"holder" tid=`) {
					t.Errorf("%s: %+v", args, s)
				}
			}
		}
		if args[0] != file && held == 0 {
			t.Errorf("nobody holds the lock: %+v", r.Slow)
		}
		if args[0] != file && calls > 1 && called == 0 { // one call may fall between two readings
			t.Errorf("no peer is named: %+v", r.Slow)
		}
	}
	collapsed := filepath.Join(t.TempDir(), "x.collapsed")
	if err := os.WriteFile(collapsed, []byte("a;b 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"does not publish for which trace":    {file},
		"--rate is for a JVM":                 {file, "--rate", "9"},
		"--thread is for a file":              {fmt.Sprint(jvm.PID), "--thread", "a"},
		"no sample has a frame that --per":    {file, "--per", "nosuch"},
		"--per and --trace exclude each":      {file, "--per", "a", "--trace", "b"},
		"--top is 1 or more":                  {file, "--top", "0"},
		"--rate is between 1 and 1000":        {fmt.Sprint(jvm.PID), "--rate", "0"},
		"does not say what threads did at":    {collapsed},
		`no JVM has "nosuchprogram" in its`:   {"nosuchprogram"},
		"missing closing ): `(`":              {file, "--per", "("},
		"which JVM? --pid is missing, or a p": nil,
	} {
		if code, told := runGoprof(t, append([]string{"slow"}, args...)...); code == 0 || !strings.Contains(told, want) ||
			!strings.Contains(told, "try: ") {
			t.Errorf("slow %q: %d %s\nwant %s", args, code, told, want)
		}
	}
}

// TestSlowWaits: of a file with wakers, the thread that gave the lock back is the one that had it.
func TestSlowWaits(t *testing.T) {
	machine.NeedPerf(t)
	jvm := jvmtest.Start(t, jvmtest.JDKs(t)[0], "truth.SlowRequests", "-Xmx64m")
	file := filepath.Join(t.TempDir(), "x.jfr")
	if code, told := runGoprof(t, "record", fmt.Sprint(jvm.PID), "-d", "4s", "--event", "off-cpu", "--wakers",
		"--min", "1ms",
		"-o", file, "-q"); code != 0 {
		t.Fatal(told)
	}
	out, err := exec.Command("goprof", "slow", file, "--per", "SlowRequests[.]handle$").CombinedOutput()
	held := regexp.MustCompile(`(?m)^ +\S+  SlowRequests.enter \(blocked.*\), .* held by ("holder" )?tid=\d+`)
	if err != nil || !held.Match(out) || !strings.Contains(string(out), "only their waits are in the recording") ||
		strings.Contains(string(out), "who had the locks is not") {
		t.Errorf("%v %s", err, out)
	}
}
