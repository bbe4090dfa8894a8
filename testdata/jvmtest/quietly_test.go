//go:build linux

package jvmtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestQuietly: a step that a script runs quietly (scripts/quietly.sh) prints one line. One that fails also prints the
// end of its output and names the file with all of it, and its exit code is the step's.
func TestQuietly(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "logs", "step.log")
	run := func(step string) (string, error) {
		const script = `source scripts/quietly.sh; quietly "$1" "installing gcc" bash -c "$2"`
		cmd := exec.Command("bash", "-euc", script, "bash", log, step)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run("seq 1 400; seq 1 400 >&2")
	if err != nil || out != "installing gcc ...\n" {
		t.Errorf("a step that succeeds printed %q, %v", out, err)
	}
	if kept, _ := os.ReadFile(log); strings.Count(string(kept), "\n") != 800 {
		t.Errorf("the log has %d lines, not 800", strings.Count(string(kept), "\n"))
	}
	out, err = run("seq 1 400; echo no such package; exit 3")
	lines := strings.Count(out, "\n")
	if !strings.Contains(out, "no such package\n") || !strings.Contains(out, log) || lines > 25 {
		t.Errorf("a step that fails printed %d lines: %s", lines, out)
	}
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 3 {
		t.Errorf("a step that fails ended with %v, not 3", err)
	}
}
