//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"goprof/cmd/goprof/exit"
	"goprof/testdata/jvmtest"
)

// TestCtrlC: of several dumps, Ctrl-C leaves the complete ones. A triage says that it knows nothing yet, and reports
// no finding.
func TestCtrlC(t *testing.T) {
	t.Parallel()
	jvm := guest(t)
	pid := strconv.Itoa(jvm.PID)
	out, _, code := untilInterrupted(t, `"VM Thread"`, "dump", "-n", "3", "--every", "1h", pid)
	if code != exit.OK || strings.Count(out, " Java threads: ") != 1 {
		t.Errorf("dump: exit code %d: %s", code, out)
	}
	out, told, code := untilInterrupted(t, "looking at process", "triage", "-d", "10m", pid)
	if code != exit.General || out != "" || !strings.Contains(told, "interrupted: nothing can be said yet") {
		t.Errorf("triage: exit code %d: %q, %q", code, out, told)
	}
}

// untilInterrupted runs goprof. It interrupts goprof as soon as a line with this text was written, to either output.
func untilInterrupted(t *testing.T, text string, args ...string) (out, told string, code exit.Code) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), jvmtest.Slow(5*time.Minute))
	defer cancel()
	cmd := exec.CommandContext(ctx, "goprof", args...)
	var texts [2]strings.Builder
	var froms [2]io.Reader
	for i, pipe := range []func() (io.ReadCloser, error){cmd.StdoutPipe, cmd.StderrPipe} {
		from, err := pipe()
		if err != nil {
			t.Fatal(err)
		}
		froms[i] = from
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	for i, from := range froms {
		reading.Go(func() {
			for lines := bufio.NewScanner(from); lines.Scan(); {
				texts[i].WriteString(lines.Text() + "\n")
				if strings.Contains(lines.Text(), text) {
					cmd.Process.Signal(syscall.SIGINT)
				}
			}
		})
	}
	reading.Wait()
	if ctx.Err() != nil {
		t.Fatalf("goprof %s did not end: %q, %q", args[0], texts[0].String(), texts[1].String())
	}
	var status *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &status) {
		t.Fatal(err)
	}
	return texts[0].String(), texts[1].String(), exit.Code(cmd.ProcessState.ExitCode())
}
