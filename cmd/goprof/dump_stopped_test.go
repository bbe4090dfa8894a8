//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"goprof/cmd/goprof/exit"
	"goprof/process/procfs"
	machine "goprof/testdata/host"
)

// TestDumpTellsOfStop: a dump of a JVM that a signal has stopped says so, and tells how to let the JVM go on.
// jstack's layout has no place for that, so goprof says it beside the dump.
func TestDumpTellsOfStop(t *testing.T) {
	t.Parallel()
	jvm := guest(t)
	pid := strconv.Itoa(jvm.PID)
	note := fmt.Sprintf("stopped by a signal (kill -CONT %d lets it go on)", jvm.PID)
	dump := func(args ...string) (out []byte, told string) {
		cmd := exec.CommandContext(t.Context(), "goprof", append([]string{"dump", "--locks=false", pid}, args...)...)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, &stderr)
		}
		return out, stderr.String()
	}
	if out, _ := dump("--nonblocking"); bytes.Contains(out, []byte("stopped by a signal")) {
		t.Errorf("it runs: %s", out)
	}
	if err := syscall.Kill(jvm.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(jvm.PID, syscall.SIGCONT)
	machine.WaitFor(t, "the JVM has stopped", func() bool {
		stat, _, err := procfs.ReadStat(jvm.PID, jvm.PID)
		return err == nil && stat.State == 'T'
	})
	// No switch ends or begins during the recording, as nothing stops a thread or lets it go on.
	if waits, _ := said(t, exit.OK, "record", pid, "--event", "off-cpu", "-d", "500ms", "-f", "collapsed", "-o",
		"-"); !strings.Contains(waits, ";[stopped] ") {
		t.Errorf("the waits of a stopped JVM: %.300s", waits)
	}
	if _, told := said(t, exit.NoSamples, "slow", pid, "-d", "1h"); !strings.Contains(told, "it is stopped (SIGSTOP") {
		t.Errorf("slow requests of a stopped JVM: %s", told)
	}
	text, _ := dump()
	if lines := strings.Split(string(text), "\n"); len(lines) < 2 || lines[1] != note {
		t.Errorf("%.300s", text)
	}
	out, _ := dump("--json")
	var answer struct {
		Stopped bool `json:"stopped"`
	}
	if err := json.Unmarshal(out, &answer); err != nil || !answer.Stopped {
		t.Errorf("%v: %.300s", err, out)
	}
	jstack, told := dump("--format", "jstack")
	if !strings.Contains(told, "goprof: process "+pid+" is "+note+"\n") {
		t.Errorf("beside jstack's layout: %s", told)
	}
	if bytes.Contains(jstack, []byte("by a signal")) {
		t.Errorf("%.300s", jstack)
	}
}
