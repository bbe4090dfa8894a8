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
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/output/pprof"
	"goprof/profile"
	"goprof/sampler/guard"
	"goprof/testdata/jvmtest"
)

// agentLimit bounds a hang. It measures nothing.
var agentLimit = jvmtest.Slow(3 * time.Minute)

// liveAgent is a running agent.
type liveAgent struct {
	dir string
	cmd *exec.Cmd
	log agentLog
}

// agentLog holds an agent's messages, and can be read while it runs.
type agentLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *agentLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *agentLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// ofShares chooses the JVMs of tests that run truth.Shares, one of these tests at a time.
var ofShares = []string{"--match", "main=Shares"}

// startAgent starts an agent. Its arguments choose the JVMs of a test: other JVMs may run on this machine.
func startAgent(t *testing.T, args ...string) *liveAgent {
	t.Helper()
	return startAgentOf(t, "goprof", args...)
}

// startAgentOf starts an agent of some goprof.
func startAgentOf(t *testing.T, program string, args ...string) *liveAgent {
	t.Helper()
	a := &liveAgent{dir: filepath.Join(t.TempDir(), "files")}
	a.cmd = exec.Command(program, append([]string{"agent", "--files", a.dir, "--every", "1s", "--max-cpu", "0"},
		args...)...)
	a.cmd.Stderr = &a.log
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if a.cmd.ProcessState == nil {
			a.cmd.Process.Kill()
			a.cmd.Wait()
		}
	})
	return a
}

// end ends the agent as systemd does.
func (a *liveAgent) end(t *testing.T) {
	t.Helper()
	a.cmd.Process.Signal(syscall.SIGTERM)
	if err := a.cmd.Wait(); err != nil {
		t.Errorf("the agent ended with %v\n%s", err, &a.log)
	}
}

// filesOf are the files of a JVM.
func (a *liveAgent) filesOf(t *testing.T, pid int) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(a.dir, fmt.Sprintf("*-%d-*.pb.gz", pid)))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// awaitFolder waits until the agent has its folder.
func (a *liveAgent) awaitFolder(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(agentLimit); ; time.Sleep(10 * time.Millisecond) {
		if in, _ := os.ReadDir(a.dir); len(in) > 0 { // the file that locks the folder
			return
		}
		if time.Now().After(end) {
			t.Fatal("the agent has not begun")
		}
	}
}

// await waits for a file of a JVM.
func (a *liveAgent) await(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(agentLimit); len(a.filesOf(t, pid)) == 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no file of process %d\n%s", pid, &a.log)
		}
	}
}

// TestAgent: one JVM was there before the agent, one comes, and one ends while it is recorded. Each has files that
// can be read. None is left stopped.
func TestAgent(t *testing.T) {
	jdk := jvmtest.JDKs(t)[0]
	first := jvmtest.Start(t, jdk, "truth.Shares", "-Xmx64m", "--", "1", "7")
	for want, more := range map[string][]string{"recorded": nil, "left alone, by match and deny": {"--deny", "Shares"}} {
		args := slices.Concat([]string{"agent", "--dry-run", "--files", t.TempDir()}, ofShares, more)
		told, err := exec.Command("goprof", args...).Output()
		if row := fmt.Sprintf(`(?m)^%d .* truth.Shares .* %s$`, first.PID, want); err != nil ||
			!regexp.MustCompile(row).Match(told) {
			t.Errorf("--dry-run %s: %v\n%s", more, err, told)
		}
	}
	file := filepath.Join(t.TempDir(), "agent.yaml")
	write := func(text string, changed time.Time) {
		if err := errors.Join(os.WriteFile(file, []byte(text), 0o644), os.Chtimes(file, changed, changed)); err != nil {
			t.Fatal(err)
		}
	}
	write("rate: 19\n", time.Now().Add(-time.Hour))
	a := startAgent(t, append([]string{"--config", file}, ofShares...)...)
	a.await(t, first.PID)
	write("rate: 29\n", time.Now())
	second := jvmtest.Start(t, jdk, "truth.Shares", "-Xmx64m", "--", "1", "7")
	a.await(t, second.PID)
	for end := time.Now().Add(agentLimit); !strings.Contains(a.log.String(), "the configuration was read"); {
		if time.Sleep(50 * time.Millisecond); time.Now().After(end) {
			t.Fatalf("the changed file is not read\n%s", &a.log)
		}
	}
	a.keepsOnly(t, slices.Concat(guard.ToWatch, guard.ForPerf))
	first.Kill()
	a.end(t)
	if state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", second.PID)); err != nil ||
		strings.Contains(string(state), ") T ") || strings.Contains(string(state), ") t ") {
		t.Errorf("the JVM is not as it was: %q, %v", state, err)
	}
	if said := a.log.String(); !strings.Contains(said, "recording CPU time of the JVMs of this host that match and deny "+
		"choose at") || !regexp.MustCompile(`ended after \S+: \d+ JVMs were found, \d+ samples of them are in \d+ batches, `+
		`\d+ were lost.*\ngoprof: files: [1-9]\d* written, 0 not, `).MatchString(said) {
		t.Errorf("the agent says\n%s", said)
	}
	for _, pid := range []int{first.PID, second.PID} {
		samples := int64(0)
		for _, name := range a.filesOf(t, pid) {
			samples += samplesIn(t, name)
		}
		if samples == 0 {
			t.Errorf("process %d: no samples", pid)
		}
	}
}

// keepsOnly demands that the agent has no capability beside those in keep, also if it was started with all of them.
func (a *liveAgent) keepsOnly(t *testing.T, keep guard.Keep) {
	t.Helper()
	if !changesAllThreads() {
		t.Log("its capabilities are not looked at: built with cgo, Go cannot change all OS threads")
		return
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "CapPrm:")
	has, err := strconv.ParseUint(strings.Fields(rest)[0], 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	if has&(1<<unix.CAP_SYS_PTRACE) == 0 {
		return // in that case the guard drops nothing
	}
	parts := uint64(1<<unix.CAP_PERFMON | 1<<unix.CAP_CHECKPOINT_RESTORE)
	if has&parts != parts {
		has &^= 1 << unix.CAP_SYS_ADMIN // CAP_SYS_ADMIN stands for them
	}
	for _, c := range keep {
		has &^= 1 << c
	}
	if has != 0 {
		t.Errorf("it keeps the capabilities %#x", has)
	}
}

// samplesIn counts the looks of a file.
func samplesIn(t *testing.T, name string) (n int64) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	read, err := pprof.Read(f)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := read.Each(func(_ *profile.Sample, values []int64) error {
		n += values[0]
		return nil
	}); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
