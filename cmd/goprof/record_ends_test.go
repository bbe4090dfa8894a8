//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/cmd/goprof/exit"
	"goprof/testdata/jvmtest"
)

// TestKilledJFR: whatever ends goprof, other tools can read the file that was written until then.
func TestKilledJFR(t *testing.T) {
	t.Parallel()
	jvm := guest(t)
	name := filepath.Join(t.TempDir(), "x.jfr")
	cmd := exec.Command("goprof", "record", "--pid", fmt.Sprint(jvm.PID), "-o", name, "--chunk", "1s", "-r", "200")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first := waitForFile(t, name, 0)
	waitForFile(t, name, first)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	onlyNamed(t, filepath.Dir(name), "x.jfr")
	if b := readJFR(t, name); b.samples == 0 || b.events["goprof.Account"] != 0 {
		t.Errorf("%d samples, events %v", b.samples, b.events)
	}
	out, err := exec.Command(jvm.JDK.Tool("jfr"), "summary", name).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "jdk.ExecutionSample") {
		t.Errorf("jfr summary: %v: %s", err, out)
	}
	code, told := runGoprof(t, "report", name)
	if code != exit.OK || !strings.Contains(told, "was not ended: goprof was killed") {
		t.Errorf("goprof report: exit code %d: %s", code, told)
	}
}

// TestFlushJFR: SIGUSR1 writes the samples so far to the disk. Ctrl-C ends the file.
func TestFlushJFR(t *testing.T) {
	t.Parallel()
	jvm := guest(t)
	name := filepath.Join(t.TempDir(), "x.jfr")
	cmd := exec.Command("goprof", "record", "--pid", fmt.Sprint(jvm.PID), "-o", name, "-q")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Until goprof catches this signal, the signal would end goprof.
	awaitHandler(t, cmd.Process.Pid, syscall.SIGUSR1)
	for _, err := os.Stat(name); err != nil; _, err = os.Stat(name) { // until there is a sample
		if err := cmd.Process.Signal(syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if b := readJFR(t, name); b.samples == 0 || b.events["goprof.Account"] != 0 {
		t.Errorf("after SIGUSR1: %d samples, events %v", b.samples, b.events)
	}
	cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if b := readJFR(t, name); b.events["goprof.Account"] != 1 {
		t.Errorf("after Ctrl-C: events %v", b.events)
	}
}

// TestFullDiskJFR: the disk is full in the middle of a recording. That ends the recording, and keeps what was
// written before.
func TestFullDiskJFR(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("a small disk can only be mounted by root")
	}
	jvm := jvmtest.Start(t, jvmtest.JDKs(t)[0], "truth.Shares", "--", "1", "2")
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("no tmpfs can be mounted here: %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	if err := os.WriteFile(filepath.Join(dir, "other"), make([]byte, 900<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "x.jfr")
	code, told := runGoprof(t, "record", "--pid", fmt.Sprint(jvm.PID), "-o", name, "--chunk", "1s", "-r", "500")
	if code != exit.OutputFailed || !strings.Contains(told, "events are lost") ||
		!strings.Contains(told, "no space left on device") || !strings.Contains(told, "try: goprof report ") {
		t.Errorf("exit code %d: %s", code, told)
	}
	onlyNamed(t, dir, "other", "x.jfr")
	if b := readJFR(t, name); b.samples == 0 {
		t.Error("nothing was kept")
	}
}
