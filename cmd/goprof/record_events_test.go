//go:build linux

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"goprof/cmd/goprof/exit"
	"goprof/output/recording"
	"goprof/profile"
	"goprof/profile/redact"
	"goprof/sampler"
	"goprof/sampler/session"
	"goprof/testdata/jvmtest"
)

// TestRecordsSeveralEvents: what the account says that samples of each event stand for is in the JFR file, to the byte
// and to the piece, but for those that were lost. The other formats take one event, and say so.
func TestRecordsSeveralEvents(t *testing.T) {
	if err := sampler.TryProbes(); err != nil {
		t.Skipf("this machine permits no probes: %v", err)
	}
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Allocating", "-Xmx128m", "--", "100000000", "2")
		dir := t.TempDir()
		name := filepath.Join(dir, "x.jfr")
		sum := record(t, jvm.PID, name, "-d", "1", "--event", "alloc=64k,page-faults,libc:malloc=1")
		stood := map[string]int64{}
		for _, e := range sum.Events {
			stood[e.Name] += e.Stood
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

// sumOf is what the samples of an event stand for in a recording.
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

// TestRecordsKernelFrames: of CPU time, too, the kernel's functions stand above the program's, in every format.
func TestRecordsKernelFrames(t *testing.T) {
	if power, err := sampler.TryPerf(0); err != nil || !power.Kernel {
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

// TestEventNamesStay: what is called after an event is called so without names, too: its type in a JFR file is.
func TestEventNamesStay(t *testing.T) {
	by := redact.New(redact.Default(), []byte("the key of this test"))
	for _, p := range session.EventPresets() {
		if got := by.Text(p.Name); got != p.Name {
			t.Errorf("%s becomes %s", p.Name, got)
		}
	}
}
