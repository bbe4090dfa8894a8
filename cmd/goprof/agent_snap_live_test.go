//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"goprof/cmd/goprof/internal/snapper"
	"goprof/output/snap"
	"goprof/testdata/jvmtest"
)

// runsGoprof reports whether a process of goprof has these words in its command line, one after the other.
func runsGoprof(words string) bool { return pidOf(words) > 0 }

// pidOf is that process.
func pidOf(words string) int {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range all {
		line, err := os.ReadFile(name)
		if err == nil && strings.Contains(strings.ReplaceAll(string(line), "\x00", " "), words) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			return pid
		}
	}
	return 0
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(agentLimit); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not in time", what)
		}
	}
}

// TestAgentSnaps: at SIGUSR2 the agent takes a snap, which keeps what was read though the JVM dies meanwhile.
// The agent says that snaps are off when the process that takes them was killed: it has no right to start another one.
func TestAgentSnaps(t *testing.T) {
	t.Parallel()
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Guest", "--", "5", "60")
		agentEndsSnap(t, jvm)
		dir := filepath.Join(t.TempDir(), "snaps")
		a := snappingAgent(t, jvm, dir)
		time.Sleep(2 * time.Second) // a snap takes ten
		a.cmd.Process.Signal(syscall.SIGUSR2)
		time.Sleep(time.Second)
		jvm.Kill()
		var files []string
		await(t, "the file", func() bool {
			files, _ = filepath.Glob(filepath.Join(dir, fmt.Sprintf("snap-%d-*.zip", jvm.PID)))
			return len(files) > 0
		})
		r, err := snap.Open(files[0])
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		before, err := r.File("before.csv")
		if err != nil {
			t.Fatal(err)
		}
		if head, err := io.ReadAll(before); err != nil || !strings.HasPrefix(string(head), "time,uptime_seconds,") {
			t.Errorf("before.csv: %q, %v", head, err)
		}
		kept := 0
		contents, err := r.Contents()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range contents.Parts {
			if p.State == snap.Kept {
				kept++
			}
		}
		if kept == 0 || len(contents.Lacking()) == 0 {
			t.Errorf("%+v", contents.Parts)
		}
		second := pidOf(snapper.Command + " --on SIGUSR2 --dir " + dir)
		syscall.Kill(second, syscall.SIGKILL)
		await(t, "its end", func() bool { return syscall.Kill(second, 0) == syscall.ESRCH }) // a zombie is there
		await(t, "a word about it", func() bool { return strings.Contains(a.log.String(), "snaps are off until") })
		a.end(t)
		for _, want := range []string{"(SIGUSR2): it has had a snap 0 minutes ago", "has ended: signal: killed"} {
			if !strings.Contains(a.log.String(), want) {
				t.Errorf("nothing says %q:\n%s", want, &a.log)
			}
		}
	})
}

// agentEndsSnap: when the agent ends, a snap that is being taken ends, and keeps its parts.
func agentEndsSnap(t *testing.T, jvm *jvmtest.JVM) {
	dir := filepath.Join(t.TempDir(), "snaps")
	a := snappingAgent(t, jvm, dir)
	time.Sleep(2 * time.Second)
	a.end(t)
	await(t, "the snap's end", func() bool { return !runsGoprof(snapper.Command + " --on SIGUSR2 --dir " + dir) })
	files, _ := filepath.Glob(filepath.Join(dir, fmt.Sprintf("snap-%d-*.zip", jvm.PID)))
	if len(files) != 1 || runsGoprof("snap --pid "+strconv.Itoa(jvm.PID)+" -o "+dir) {
		t.Fatalf("%q\n%s", files, &a.log)
	}
	for _, p := range states(t, files[0]) {
		if strings.Contains(p.Why, "interrupted") {
			return
		}
	}
	t.Errorf("it was not interrupted: %+v", states(t, files[0]))
}

// snappingAgent is an agent that takes a snap of a JVM.
func snappingAgent(t *testing.T, jvm *jvmtest.JVM, dir string) *liveAgent {
	a := startAgent(t, "--match", "main=^truth.Guest$", "--snap-on", "SIGUSR2", "--snap-dir", dir)
	await(t, "the second process", func() bool { return runsGoprof(snapper.Command + " --on SIGUSR2 --dir " + dir) })
	await(t, "a snap", func() bool {
		a.cmd.Process.Signal(syscall.SIGUSR2)
		return runsGoprof("snap --pid " + strconv.Itoa(jvm.PID) + " -o " + dir)
	})
	return a
}
