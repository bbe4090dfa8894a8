//go:build linux

package oracle

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/sampler/guard"
	"goprof/sampler/threads"
	"goprof/testdata/host"
	"goprof/testdata/jvmtest"
)

// TestRecordingIsGuarded: while goprof records, all its OS threads are behind the guard, those of later too, in each
// mode and with each engine; and it records as well as ever. The program that it started is not behind it.
func TestRecordingIsGuarded(t *testing.T) {
	t.Parallel()
	host.NeedRoot(t)
	goprof := buildGoprof(t)
	jdk := jvmtest.JDKs(t)[0]
	java := jvmtest.CommandLine(t, jdk, "truth.Shares", "--", "1", "1")
	for _, opt := range [][]string{{"--engine", "ptrace"}, {"--mode", "wall"}, {"--engine", "perf"}} {
		t.Run(strings.Join(opt, " "), func(t *testing.T) {
			for tries := 0; !guardedRun(t, goprof, java, opt); tries++ { // it may have had no CPU while the program ran
				if tries == 3 {
					t.Fatal("nothing was recorded")
				}
			}
		})
	}
}

// guardedRun records, and reports whether there is something in the recording; perf may not be permitted.
func guardedRun(t *testing.T, goprof string, java, opt []string) bool {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.collapsed")
	cmd := exec.Command(goprof, slices.Concat([]string{"record", "-r", "50", "-o", out}, opt,
		[]string{"--"}, java)...)
	stdin, err := cmd.StdinPipe() // at the end of its input the program ends
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	program := 0
	defer func() { // the program goes on when the recording has ended
		for _, child := range append(host.Children(cmd.Process.Pid), program) {
			if child != 0 {
				unix.Kill(child, unix.SIGKILL)
			}
		}
		cmd.Wait()
	}()
	if !within(time.Minute, func() bool {
		return guardStates(cmd.Process.Pid)["NoNewPrivs=1 Seccomp=2 "+
			capabilitiesKept(t)] > 0
	}) {
		t.Fatalf("never behind the guard: %v %s", guardStates(cmd.Process.Pid), said.String())
	}
	if !within(5*time.Minute, func() bool {
		program = javaOfChildren(cmd.Process.Pid)
		return program != 0 && threads.ProcessCPU(program) > 2*time.Second
	}) {
		t.Fatalf("no java among goprof's children has run for long: %s", said.String())
	}
	if states := guardStates(cmd.Process.Pid); len(states) != 1 {
		t.Errorf("not all of its threads: %v", states)
	}
	if states := guardStates(program); states["NoNewPrivs=0 Seccomp=0 "+capabilitiesOf(t)] == 0 || len(states) != 1 {
		t.Errorf("the program is behind it, too: %v", states)
	}
	unix.Kill(cmd.Process.Pid, unix.SIGINT)
	return within(time.Minute, func() bool {
		text, err := os.ReadFile(out)
		return err == nil && strings.Contains(string(text), "truth.Shares.")
	}) || opt[1] == "perf"
}

// javaOfChildren is the child of a process that has become java, 0 if none has.
func javaOfChildren(pid int) int {
	for _, child := range host.Children(pid) {
		if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", child)); string(name) == "java\n" {
			return child
		}
	}
	return 0
}

func within(limit time.Duration, done func() bool) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if done() {
			return true
		}
	}
	return false
}

// capabilitiesKept are those that a recording keeps of those that we have.
func capabilitiesKept(t *testing.T) string {
	t.Helper()
	effective := ownCapabilities(t)
	mask := uint64(0)
	for _, c := range guard.ToRecord {
		mask |= 1 << c
	}
	if guard.With(guard.ToRecord, func() {}) || effective&(1<<unix.CAP_PERFMON) == 0 {
		mask |= 1 << unix.CAP_SYS_ADMIN
	}
	return fmt.Sprintf("CapEff=%016x", effective&mask)
}

func capabilitiesOf(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("CapEff=%016x", ownCapabilities(t))
}

// ownCapabilities are those that this test has.
func ownCapabilities(t *testing.T) (effective uint64) {
	t.Helper()
	text, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(text), "\nCapEff:\t")
	if _, err := fmt.Sscanf(rest, "%x", &effective); err != nil {
		t.Fatal(err)
	}
	return effective
}

// guardStates counts the threads of a process by what guards them.
func guardStates(pid int) map[string]int {
	states := map[string]int{}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // it has ended
		}
		var state []string
		for _, key := range []string{"NoNewPrivs", "Seccomp", "CapEff"} {
			if m := regexp.MustCompile(key + `:\t(\w+)`).FindSubmatch(text); m != nil {
				state = append(state, key+"="+string(m[1]))
			}
		}
		states[strings.Join(state, " ")]++
	}
	return states
}
