//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/cmd/goprof/exit"
	machine "goprof/testdata/host"
	"goprof/testdata/jvmtest"
)

// onceJSON has the fields that --once --json promises, and no others.
type onceJSON struct {
	Threads []struct {
		TID       int      `json:"tid"`
		Name      string   `json:"name"`
		State     string   `json:"state"`
		CPU       float64  `json:"cpu"`
		Frame     string   `json:"frame"`
		AllocRate *float64 `json:"alloc_rate"`
	} `json:"threads"`
	Methods []struct {
		Name  string  `json:"name"`
		Self  float64 `json:"self"`
		Total float64 `json:"total"`
	} `json:"methods"`
	Pools []struct {
		Name   string `json:"name"`
		Busy   int    `json:"busy"`
		Count  int    `json:"count"`
		Queued *int64 `json:"queued"`
	} `json:"pools"`
}

// TestTopPools: a program that has executors of each kind knows how many of their threads are busy, and what waits.
func TestTopPools(t *testing.T) {
	t.Parallel()
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		pools := map[string]string{}
		for _, p := range once(t, jvmtest.Start(t, jdk, "truth.Executing", "-Xmx64m")).Pools {
			queued := "?"
			if p.Queued != nil {
				queued = fmt.Sprint(*p.Queued)
			}
			pools[p.Name] = fmt.Sprintf("%d of %d, %s wait", p.Busy, p.Count, queued)
		}
		for name, want := range map[string]string{"linked-*": "4 of 4, 7 wait", "idle-*": "0 of 3, 0 wait",
			"timed-*": "1 of 1, ? wait", "handed-*": "2 of 2, 0 wait", "ForkJoinPool-1-worker-*": "2 of 2, 9 wait"} {
			if pools[name] != want {
				t.Errorf("%s: %q, want %q: %v", name, pools[name], want, pools)
			}
		}
	})
}

// rate is what a thread of truth.Rates has used and allocated, measured by that thread.
type rate struct{ at, cpu, allocated float64 }

func ratesOf(t *testing.T, jvm *jvmtest.JVM) map[string]rate {
	t.Helper()
	rates := map[string]rate{}
	for _, line := range jvm.Command("truth") {
		f := strings.Fields(line)
		if len(f) != 8 {
			t.Fatalf("%q", line)
		}
		var n [3]float64
		for i := range n {
			n[i], _ = strconv.ParseFloat(f[3+2*i], 64)
		}
		rates[f[1]] = rate{n[0], n[1], n[2]}
	}
	return rates
}

// onceFor is how long the readings of these tests take, in seconds.
const onceFor = 5

// onceTries is how often a reading may differ from the truth. That happens if the machine gives the JVM more CPU
// time right before or after the reading than during it: the truth is of a slightly longer time.
const onceTries = 6

// TestTopOnce compares one reading with what the threads themselves were charged and have allocated.
func TestTopOnce(t *testing.T) {
	jvmtest.ForDrawnJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Rates", "--", "20", "10")
		var got *onceJSON
		var wrong []string
		for try := range onceTries {
			before := ratesOf(t, jvm)
			got = once(t, jvm, "-d", strconv.Itoa(onceFor))
			if wrong = ratesDiffer(t, got, before, ratesOf(t, jvm)); len(wrong) == 0 {
				break
			}
			t.Logf("try %d: %q", try, wrong)
		}
		for _, text := range wrong {
			t.Error(text)
		}
		checkSleepers(t, got)
		checkMethods(t, got)
	})
}

// ratesDiffer tells in what a reading differs from the threads' own figures, between two times that lie around the
// reading.
func ratesDiffer(t *testing.T, got *onceJSON, before, after map[string]rate) (wrong []string) {
	t.Helper()
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	seen := map[string]bool{}
	for _, th := range got.Threads {
		seen[th.Name] = true
		a, b := before[th.Name], after[th.Name]
		if a.at == 0 {
			continue
		}
		cpu, alloc := (b.cpu-a.cpu)/(b.at-a.at), (b.allocated-a.allocated)*1e9/(b.at-a.at)
		t.Logf("%-9s cpu %.3f, truth %.3f; %s", th.Name, th.CPU, cpu, th.State)
		if math.Abs(th.CPU-cpu) > 0.02+0.25*cpu {
			say("%s has cpu %.3f, and used %.3f", th.Name, th.CPU, cpu)
		}
		switch {
		case th.AllocRate == nil:
			say("%s has no alloc_rate", th.Name)
		case math.Abs(*th.AllocRate-alloc) > 100e3+0.25*alloc:
			say("%s has alloc_rate %.0f, and allocated %.0f a second", th.Name, *th.AllocRate, alloc)
		default:
			t.Logf("%-9s alloc_rate %.0f, truth %.0f", th.Name, *th.AllocRate, alloc)
		}
	}
	for name := range before {
		if !seen[name] {
			say("thread %s is missing", name)
		}
	}
	return wrong
}

// once takes a reading as JSON, which must have exactly the promised fields.
func once(t *testing.T, jvm *jvmtest.JVM, args ...string) *onceJSON {
	t.Helper()
	cmd := exec.Command("goprof", append([]string{"top", strconv.Itoa(jvm.PID), "--once", "--json"}, args...)...)
	var errors strings.Builder
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errors.String())
	}
	var got onceJSON
	d := json.NewDecoder(bytes.NewReader(out))
	d.DisallowUnknownFields()
	if err := d.Decode(&got); err != nil {
		t.Fatalf("%v: %.500s", err, out)
	}
	for _, field := range []string{"tid", "name", "state", "cpu", "frame", "alloc_rate"} {
		if n := bytes.Count(out, []byte(`"`+field+`": `)); n < len(got.Threads) {
			t.Errorf("%d of %d threads have %q", n, len(got.Threads), field)
		}
	}
	return &got
}

// checkSleepers checks the state and the topmost method of threads that sleep.
func checkSleepers(t *testing.T, got *onceJSON) {
	t.Helper()
	n := 0
	for _, th := range got.Threads {
		if !strings.HasPrefix(th.Name, "sleeper-") && !strings.HasPrefix(th.Name, "evil\x1b") {
			continue
		}
		n++
		if th.State != "sleeping" && th.State != "running" && th.State != "runnable" || th.CPU > 0.05 {
			t.Errorf("%q is %s with cpu %.3f", th.Name, th.State, th.CPU)
		}
		if th.State == "sleeping" && !strings.HasSuffix(th.Frame, ".restForEver") {
			t.Errorf("%q sleeps in %q", th.Name, th.Frame)
		}
	}
	if n != 20 {
		t.Errorf("%d of 20 threads sleep", n)
	}
}

// checkMethods checks the methods that use CPU. Their shares must be shares.
func checkMethods(t *testing.T, got *onceJSON) {
	t.Helper()
	burns := false
	for _, m := range got.Methods {
		if m.Self < 0 || m.Total > 1 || m.Self > m.Total {
			t.Errorf("%s has self %v, total %v", m.Name, m.Self, m.Total)
		}
		burns = burns || strings.HasPrefix(m.Name, "truth.Rates.burn") && m.Total > 0.3
	}
	if !burns {
		t.Errorf("truth.Rates.burn is not among the methods: %+v", got.Methods[:min(5, len(got.Methods))])
	}
	for i := 1; i < len(got.Methods); i++ {
		if got.Methods[i-1].Self < got.Methods[i].Self {
			t.Fatalf("method %d is not where it belongs by self", i)
		}
	}
}

// TestTopWithoutTerminal: goprof says what top needs, and what to do without it.
func TestTopWithoutTerminal(t *testing.T) {
	jvm := jvmtest.Start(t, jvmtest.JDKs(t)[0], "truth.Rates", "--", "3")
	pid := strconv.Itoa(jvm.PID)
	code, told := runGoprof(t, "top", pid)
	if code != exit.General || !strings.Contains(told, "is no terminal") || !strings.Contains(told, "--once") {
		t.Errorf("exit code %d: %s", code, told)
	}
	table, err := exec.Command("goprof", "top", pid, "--once", "-d", "0.5").Output()
	if err != nil || !bytes.Contains(table, []byte(" cpu-30 ")) || bytes.ContainsAny(table, "\x1b\x07") {
		t.Errorf("%v: %s", err, table)
	}
}

// TestTopOnceOfOneThatEnds: a JVM that ends between two readings is an error, because nothing can be compared.
func TestTopOnceOfOneThatEnds(t *testing.T) {
	t.Parallel()
	jvm := jvmtest.Start(t, jvmtest.JDKs(t)[0], "truth.Rates", "--", "3")
	cmd := exec.CommandContext(t.Context(), "goprof", "top", strconv.Itoa(jvm.PID), "--once", "-d", "60")
	var told strings.Builder
	cmd.Stderr = &told
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	memory := fmt.Sprintf("/proc/%d/mem", jvm.PID)
	machine.WaitFor(t, "goprof reads the JVM's memory", func() bool {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", cmd.Process.Pid))
		return slices.ContainsFunc(files, func(fd string) bool {
			to, _ := os.Readlink(fd)
			return to == memory
		})
	})
	time.Sleep(time.Second) // time for the first reading, which has no earlier one to compare with
	jvm.Kill()
	if cmd.Wait(); exit.Code(cmd.ProcessState.ExitCode()) != exit.TargetGone {
		t.Errorf("exit code %d: %s", cmd.ProcessState.ExitCode(), told.String())
	}
}
