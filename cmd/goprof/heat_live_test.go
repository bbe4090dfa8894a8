package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"goprof/testdata/jvmtest"
)

// TestHeatTextLive: a program has its threads wait for a lock from a moment on that it knows. On a busy machine the
// program gets hardly any CPU, and noise may hide it: then it is recorded again.
func TestHeatTextLive(t *testing.T) {
	t.Parallel()
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Turns")
		for range 5 {
			if turnFound(t, jvm, "audit", "--mode", "wall") {
				return
			}
			jvm.Command("usual")
		}
		t.Error("the change was never found")
	})
}

// TestHeatTextAlone: the only thread of a program leaves a call that would never end for another one.
func TestHeatTextAlone(t *testing.T) {
	t.Parallel()
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for range 3 {
			jvm := jvmtest.Start(t, jdk, "truth.Turns", "--", "alone")
			if turnFound(t, jvm, "second", "-r", "500") {
				return
			}
		}
		t.Error("the change was never found")
	})
}

// turnFound records a change, and reports whether heat tells that a method gains by it. What it tells must be right.
func turnFound(t *testing.T, jvm *jvmtest.JVM, method string, args ...string) bool {
	file := filepath.Join(t.TempDir(), "out.jfr")
	args = append([]string{"record", "--pid", strconv.Itoa(jvm.PID), "-d", "20s", "-o", file}, args...)
	record := exec.Command("goprof", args...)
	if err := record.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(11 * time.Second)
	ms, err := strconv.ParseInt(jvm.Command("audit")[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if err := record.Wait(); err != nil {
		t.Fatal(err)
	}
	told, err := exec.Command("goprof", "heat", "--text", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, told)
	}
	gains := regexp.MustCompile(`(?m)^from (\S+) \(\S+\) on:(?:.*\n)?.*\+[\d.]+ points  truth\.Turns\.` + method)
	found := gains.FindSubmatch(told)
	if found == nil {
		t.Logf("%s", told)
		return false
	}
	day := time.UnixMilli(ms).Format(time.DateOnly + " ")
	at, err := time.ParseInLocation(time.DateTime, day+string(found[1]), time.Local)
	if off := at.Sub(time.UnixMilli(ms)).Abs(); err != nil || off > 3*time.Second {
		t.Errorf("it began at %s: %s %v", time.UnixMilli(ms), told, err)
	}
	return true
}
