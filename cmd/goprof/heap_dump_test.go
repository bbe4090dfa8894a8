//go:build linux

package main

import (
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/heap/heapdump"
	"goprof/process/procfs"
	"goprof/session"
	"goprof/testdata/hprofread"
	"goprof/testdata/jvmtest"
)

// TestHeapDump: without --stop goprof writes nothing, and says how long the JVM would stand still and how to go on.
func TestHeapDump(t *testing.T) {
	t.Parallel()
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.HeapHeld", "-Xmx64m")
		pid, file := strconv.Itoa(jvm.PID), filepath.Join(t.TempDir(), "a heap.hprof")
		goprof := func(args ...string) (told string, err error) {
			args = append([]string{"heap", pid, "-o", file, "--redact", "default"}, args...)
			out, err := exec.CommandContext(t.Context(), "goprof", args...).CombinedOutput()
			return string(out), err
		}
		told, err := goprof()
		if _, there := os.Stat(file); err == nil || there == nil {
			t.Errorf("%v, %v: a dump of a JVM that runs", err, there)
		}
		for _, want := range []string{"it has to stand still for about ", ", without the disk: ",
			"goprof heap " + pid + " -o '" + file + "' --redact default --stop\n"} {
			if !strings.Contains(told, want) {
				t.Errorf("it does not say %q:\n%s", want, told)
			}
		}
		if told, err = goprof("--stop"); err != nil || !strings.Contains(told, "process "+pid+" goes on, after ") {
			t.Fatalf("%v:\n%s", err, told)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := hprofread.Parse(data); d.ByName("java/lang/String").Count == 0 || d.ByName("truth/HeapHeld") != nil {
			t.Error("no strings, or a name that may not be told")
		}
		pipe := filepath.Join(t.TempDir(), "pipe.hprof")
		if err := unix.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		reader, err := os.OpenFile(pipe, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		if told, err = goprof("--stop", "-o", pipe); err == nil || !strings.Contains(told, "needs a file") {
			t.Errorf("a pipe: %v:\n%s", err, told)
		}
		checkInterrupted(t, jvm.PID)
	})
}

// checkInterrupted interrupts a heap dump whose file takes nothing: the JVM goes on all the same.
func checkInterrupted(t *testing.T, pid int) {
	t.Helper()
	s, err := session.Attach(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	d := liveDump{session: s, opt: heapDumpOptions(nil), most: time.Hour, ctx: ctx}
	file := &slowDisk{pid: pid, interrupt: cancel}
	if err := d.once(file); !errors.Is(err, heapdump.ErrCancelled) || !file.held || !file.goesOn.Load() {
		t.Errorf("interrupted: %v, held %v, goes on %v", err, file.held, file.goesOn.Load())
	}
}

// slowDisk is a file that takes nothing until the process goes on.
type slowDisk struct {
	pid       int
	interrupt func()
	held      bool
	goesOn    atomic.Bool
}

func (f *slowDisk) Write(p []byte) (int, error) {
	held := func() bool {
		stat, _, err := procfs.ReadStat(f.pid, f.pid)
		return err == nil && stat.State == 't'
	}
	if f.goesOn.Load() {
		return len(p), nil
	}
	f.held = held()
	f.interrupt()
	for range 150 {
		if time.Sleep(10 * time.Millisecond); !held() {
			f.goesOn.Store(true)
			break
		}
	}
	return len(p), nil
}

// TestStands: what is expected is bounded, whatever was measured.
func TestStands(t *testing.T) {
	for _, c := range []struct {
		speed speed
		want  time.Duration
	}{
		{speed{used: 1000 << 20, prepared: 3 * time.Second, bytes: 100 << 20, took: 500 * time.Millisecond}, 8 * time.Second},
		{speed{used: math.MaxUint64, bytes: 1, took: time.Second}, mostStands},
		{speed{used: 1 << 30, prepared: math.MaxInt64 - mostStands, bytes: 1 << 30, took: 1}, mostStands},
		{speed{used: 1 << 30, prepared: time.Second, took: time.Second}, standsUnknown},
	} {
		if got, about := c.speed.stands(); got != c.want || about == "" {
			t.Errorf("%+v: %v, want %v", c.speed, got, c.want)
		}
	}
	if got := round(mostStands); got != mostStands-mostStands%(100*time.Second) {
		t.Errorf("%v", got)
	}
}
