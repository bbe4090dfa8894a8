//go:build linux

package main

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"goprof/cmd/goprof/exit"
	"goprof/process/procfs"
	"goprof/testdata/ctest"
	machine "goprof/testdata/host"
	"goprof/testdata/jvmtest"
)

// TestFrozen: each command names the cgroup that has frozen a JVM, and what thaws it. A dump has all stacks. Triage
// finds that the JVM is frozen, and says of what does not move that it is not known.
func TestFrozen(t *testing.T) {
	t.Parallel()
	freezers := ctest.Freezers(t)
	jvm := jvmtest.Start(t, jvmtest.JDKs(t)[0], "truth.Deadlocks", "--", "held")
	pid := strconv.Itoa(jvm.PID)
	for version, f := range freezers {
		f.Borrow(t, jvm.PID)
		if told, _ := goprofSays(t, "dump", pid); strings.Contains(told, "frozen") {
			t.Errorf("version %s: it runs: %s", version, told)
		}
		f.Freeze(t)
		machine.WaitFor(t, "the JVM is frozen", func() bool { return procfs.FrozenBy(jvm.PID) != nil })
		by := "frozen by its cgroup /" + filepath.Base(f.Dir())
		for _, c := range []struct {
			line []string
			code exit.Code
		}{
			{[]string{"dump", pid}, 0},
			{[]string{"locks", pid}, 0},
			{[]string{"heap", pid}, 0},
			{[]string{"memory", pid}, 0},
			{[]string{"doctor", "--pid", pid}, 0},
			{[]string{"triage", pid, "-d", "4s"}, exit.Found},
			{[]string{"record", pid, "-d", "1s", "-o", filepath.Join(t.TempDir(), "out.collapsed")}, exit.NoSamples},
		} {
			told, code := goprofSays(t, c.line...)
			if code != int(c.code) || !strings.Contains(told, by) || !strings.Contains(told, "echo ") {
				t.Errorf("version %s: %q: code %d: %s", version, c.line, code, told)
			}
			if strings.Contains(told, "no stack") || strings.Contains(told, "Nothing is wrong") ||
				c.line[0] == "dump" && !strings.Contains(told, "truth.Deadlocks.enter") {
				t.Errorf("version %s: %q: %s", version, c.line, told)
			}
		}
		f.Thaw(t)
	}
}

// goprofSays is what goprof prints on both streams, and its exit code.
func goprofSays(t *testing.T, line ...string) (told string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "goprof", line...)
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}
