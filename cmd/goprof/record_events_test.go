//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"goprof/cmd/goprof/exit"
	"goprof/output/recording"
	"goprof/profile"
	"goprof/sampler/events"
	"goprof/sampler/offcpu"
	"goprof/sampler/ring"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// TestRecordsSeveralEvents: the account says what the samples of each event stand for. The JFR file has the same, to
// the byte and to the piece, except lost samples. Each of the other formats takes one event, and says so.
func TestRecordsSeveralEvents(t *testing.T) {
	t.Parallel()
	if err := events.TryProbes(); err != nil {
		t.Skipf("this machine permits no probes: %v", err)
	}
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		dir := t.TempDir()
		name := filepath.Join(dir, "x.jfr")
		const newBuffer = "libjvm:AllocTracer::send_allocation_in_new_tlab"
		var jvm *jvmtest.JVM
		var sum *profile.Summary
		// If the JVM has touched its whole heap before goprof comes, it has hardly any page faults.
		for tries := 0; tries == 0 || tries < recordTries && lacksAny(sum, "alloc", "page-faults", "libc:malloc"); tries++ {
			if jvm != nil {
				jvm.Kill()
			}
			jvm = jvmtest.Start(t, jdk, "truth.Allocating", "-Xmx128m", "--", "100000000", "2")
			sum = record(t, jvm.PID, name, "-d", "1", "--event", "alloc=64k,page-faults,libc:malloc=1,"+newBuffer+"=1000")
		}
		hits := map[string]int64{}
		stood := map[string]int64{}
		for _, e := range sum.Events {
			stood[e.Name] += e.Stood
			hits[e.Name] = max(hits[e.Name], e.Hits)
		}
		// alloc has a probe at this function, too. All events of a run are of the same time.
		if a, b := hits["alloc"], hits[newBuffer]; b == 0 || a > b+b/20+5 || b > a+a/20+5 {
			t.Errorf("the same function was called %d and %d times", a, b)
		}
		for event, weight := range map[string]profile.Weight{"alloc": profile.Bytes, "page-faults": profile.Samples,
			"libc:malloc": profile.Samples} {
			got := sumOf(t, name, event, weight)
			if got == 0 || got > stood[event] || sum.Lost == 0 && got != stood[event] {
				t.Errorf("%s: %d in the file, %d in the account; %d lost", event, got, stood[event], sum.Lost)
			}
		}
		if usual := sumOf(t, name, "", profile.Bytes); usual != sumOf(t, name, "alloc", profile.Bytes) {
			t.Errorf("without --event it is read as %d, and alloc was asked for first", usual)
		}
		code, told := runGoprof(t, "record", "--pid", fmt.Sprint(jvm.PID), "-o", filepath.Join(dir, "x.html"), "-d", "1",
			"--event", "alloc,page-faults")
		if code != exit.General || !strings.Contains(told, "JFR") {
			t.Errorf("exit code %d: %s", code, told)
		}
		proto := filepath.Join(dir, "x.pb.gz")
		sum = record(t, jvm.PID, proto, "-d", "0.5", "--alloc", "64k", "--max-overhead", "50")
		all := sum.Events[0].Stood + sum.Events[1].Stood
		if got := sumOf(t, proto, "", profile.Bytes); got == 0 || sum.Lost == 0 && got != all {
			t.Errorf("%d bytes in pprof's file, the account says %+v", got, sum.Events)
		}
	})
}

// lacksAny reports whether one of these events has no sample.
func lacksAny(sum *profile.Summary, events ...string) bool {
	stood := map[string]int64{}
	for _, e := range sum.Events {
		stood[e.Name] += e.Stood
	}
	return slices.ContainsFunc(events, func(name string) bool { return stood[name] == 0 })
}

// TestRecordsParts: CPU time, waits and late safepoints go into one file with events. Each part has what its account
// says. The JDK's own tool reads the same.
func TestRecordsParts(t *testing.T) {
	t.Parallel()
	if err := errors.Join(events.TryProbes(), offcpu.Try(os.Getpid())); err != nil {
		t.Skipf("this machine permits no probes, or tells of no context switches: %v", err)
	}
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Allocating", "-Xmx64m", "--", "300000000", "2")
		name := filepath.Join(t.TempDir(), "x.jfr")
		var sum, events, cpu, waits *profile.Summary
		for tries := 0; tries == 0 || tries < recordTries && events.Samples*cpu.Samples*waits.Samples == 0; tries++ {
			sum = record(t, jvm.PID, name, "-d", "1.5", "-r", "200", "--redact", "default", "--event",
				"alloc=64k,cpu,off-cpu,ttsp,thread-start")
			accounts := map[string]*profile.Summary{sum.Meta.Part: sum}
			for i := range sum.Parts {
				accounts[sum.Parts[i].Meta.Part] = &sum.Parts[i]
			}
			events, cpu, waits = accounts["alloc,thread-start"], accounts["cpu"], accounts["off-cpu"]
			if len(accounts) != 4 || events == nil || cpu == nil || waits == nil || accounts["ttsp"] == nil {
				t.Fatalf("%+v", accounts)
			}
		}
		if sum.Meta.Part != "alloc,thread-start" || sum.OwnCPU == 0 || cpu.OwnCPU != 0 {
			t.Errorf("%s leads", sum.Meta.Part)
		}
		counted := map[string]int64{}
		for row := range strings.Lines(jvmtest.JFRTool(t, jdk, "summary", name)) {
			if f := strings.Fields(row); len(f) == 3 {
				counted[f[0]], _ = strconv.ParseInt(f[1], 10, 64)
			}
		}
		// the JVM may start a compiler's thread meanwhile
		allocs := events.Samples - counted["goprof.event.thread_start"]
		allocs += events.Contents.Unmet // one without a stack for each
		for part, want := range map[string]int64{"cpu": cpu.Samples, "off-cpu": waits.Samples, "alloc": allocs} {
			if got := sumOf(t, name, part, profile.Samples); got == 0 || got != want {
				t.Errorf("%s: %d samples in the file, %d in the account", part, got, want)
			}
		}
		if got := counted["jdk.ExecutionSample"] + counted["jdk.NativeMethodSample"]; got != cpu.Samples {
			t.Errorf("jfr finds %d samples of CPU time, the account has %d", got, cpu.Samples)
		}
		if got := counted["jdk.ObjectAllocationSample"]; got != allocs {
			t.Errorf("jfr finds %d allocations, the account has %d", got, allocs)
		}
		if counted["profiler.WallClockSample"]+counted["goprof.event.off_cpu"] == 0 || counted["goprof.Account"] != 4 {
			t.Errorf("jfr finds %v", counted)
		}
	})
}

// TestListsMarkers: the JVM's markers are listed. The list of other events says how many markers there are. A marker
// that does not exist cannot be recorded.
func TestListsMarkers(t *testing.T) {
	t.Parallel()
	if err := events.TryProbes(); err != nil {
		t.Skipf("this machine permits no probes: %v", err)
	}
	jvm := jvmtest.Start(t, jvmtest.JDKs(t)[0], "truth.Happenings")
	pid := fmt.Sprint(jvm.PID)
	for want, args := range map[string][]string{
		`(?m)^usdt:hotspot:gc__begin +yes$`:                {"events", pid, "--usdt"},
		`(?m)^group:tracepoint +(yes|no) `:                 {"events", pid},
		`(?m)^usdt:\S+ \.\.\. +yes +\d+ markers .* --usdt`: {"events", pid},
	} {
		told, err := exec.CommandContext(t.Context(), "goprof", args...).Output()
		if err != nil || !regexp.MustCompile(want).Match(told) {
			t.Errorf("%v: %v\n%s", args, err, told)
		}
	}
	code, told := runGoprof(t, "record", pid, "--event", "usdt:hotspot:nosuch", "-d", "1", "-o", "-")
	if code != exit.NoEvent || !strings.Contains(told, "no library of the process has a marker of that name") {
		t.Errorf("exit code %d: %s", code, told)
	}
	code, told = runGoprof(t, "record", pid, "--event", "sched:nosuch", "-d", "1", "-o", "-")
	remedy := "no such library"
	if missing := session.TracepointsError(); missing != nil {
		remedy = missing.Remedy
	}
	if code != exit.NoEvent || !strings.Contains(told, remedy) {
		t.Errorf("exit code %d: %s", code, told)
	}
}

// sumOf is what the samples of an event in a recording stand for.
func sumOf(t *testing.T, name, event string, weight profile.Weight) (n int64) {
	t.Helper()
	file, err := recording.Open(name, recording.Options{Event: event, Weight: &weight})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	err = file.Each(func(s *profile.Sample) error {
		n += recording.Weigh(s, weight)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestRecordsKernelFrames: the kernel's functions stand above those of the program in every format, for CPU time as
// well.
func TestRecordsKernelFrames(t *testing.T) {
	t.Parallel()
	if power, err := ring.Try(0); err != nil || !power.Kernel {
		t.Skipf("perf_event may not look into the kernel here: %v", err)
	}
	jvm := jvmtest.Start(t, jvmtest.JDKs(t)[0], "truth.Allocating", "-Xmx128m", "--", "2000000000", "2")
	for _, end := range []string{"jfr", "collapsed"} {
		name := filepath.Join(t.TempDir(), "x."+end)
		record(t, jvm.PID, name, "-d", "1", "-r", "1000", "--kernel")
		file, err := recording.Open(name, recording.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		n := int64(0)
		if err := file.Each(func(s *profile.Sample) error {
			if top := s.Stack.Frames[0]; top.Kind == profile.Kernel && !strings.HasPrefix(top.Func.Name, "[") {
				n += s.Looks()
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			t.Errorf("%s: no sample was in the kernel", end)
		}
	}
}
