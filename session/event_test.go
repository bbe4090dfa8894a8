//go:build linux

package session

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"goprof/profile"
	"goprof/unwind"
	"goprof/vmstructs"
)

// TestMayNeedProbes: a recording of a counter need not keep the right to set probes.
func TestMayNeedProbes(t *testing.T) {
	for name, want := range map[string]bool{
		"page-faults": false, "major-faults": false, "context-switches": false, "cpu-migrations": false, "cycles": false,
		"r1a2": false, "r0xead": false, "read": true, "r": true, "r0x": true,
		"alloc": true, "exceptions": true, "malloc": true, "libc:write": true, "sched:sched_switch": true, "nothing": true,
	} {
		if got := MayNeedProbes(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestTracepoints: a tracepoint has the number that tracefs gives. Without tracefs, the error has the command that
// mounts it.
func TestTracepoints(t *testing.T) {
	was, wasLockdown := tracefs, lockdown
	defer func() { tracefs, lockdown = was, wasLockdown }()
	lockdown = filepath.Join(t.TempDir(), "lockdown")
	tracefs = []string{filepath.Join(t.TempDir(), "tracing"), filepath.Join(t.TempDir(), "debug")}
	if bad := TracepointsError(); bad == nil || !strings.Contains(bad.Remedy, "mount -t tracefs nodev "+tracefs[0]) {
		t.Errorf("without tracefs: %+v", bad)
	}
	for _, mode := range []string{"[none] integrity confidentiality\n", "none integrity [confidentiality]\n"} {
		if err := os.WriteFile(lockdown, []byte(mode), 0o600); err != nil {
			t.Fatal(err)
		}
		bad := TracepointsError()
		if bad == nil || strings.Contains(bad.Why, "locked down") != strings.Contains(mode, "[conf") {
			t.Errorf("%q: %+v", mode, bad)
		}
		other := EventError{Why: "no such library", Remedy: "grep"}
		if other.orTracepoint(); strings.HasSuffix(other.Remedy, ": ") || !strings.HasSuffix(other.Why, bad.Why) {
			t.Errorf("%q: %+v", mode, other)
		}
	}
	if os.Geteuid() == 0 { // root may read a folder of any mode
		runtime.LockOSThread()
		unix.RawSyscall(unix.SYS_SETFSUID, 1000, 0, 0)
		bad := TracepointsError()
		unix.RawSyscall(unix.SYS_SETFSUID, 0, 0, 0)
		runtime.UnlockOSThread()
		if bad == nil || bad.Why != "only root may read tracefs" {
			t.Errorf("tracefs of root: %+v", bad)
		}
	}
	point := filepath.Join(tracefs[1], "events", "sched", "sched_switch")
	if err := os.MkdirAll(point, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(point, "id"), []byte("314\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if bad := TracepointsError(); bad != nil {
		t.Errorf("with tracefs: %v", bad)
	}
	if id, ok := tracepoint("sched", "sched_switch"); !ok || id != 314 {
		t.Errorf("sched:sched_switch: %d %v", id, ok)
	}
	if id, ok := tracepoint("..", "id"); ok {
		t.Errorf("..:id: %d", id)
	}
}

// TestClassesOfEvents: the class of a lambda has a different name in each run, but one name in all recordings.
func TestClassesOfEvents(t *testing.T) {
	e := &eventReader{Session: &Session{Walker: new(unwind.Walker)}}
	for _, c := range []struct{ name, want, raw string }{
		{"kafka.log.UnifiedLog$$Lambda$589+0x00007f7188338618", "kafka.log.UnifiedLog$$Lambda",
			"kafka.log.UnifiedLog$$Lambda$589+0x00007f7188338618"},
		{"byte[]", "byte[]", "byte[]"},
		{"", profile.UnknownClass, profile.UnknownClass},
	} {
		e.Walker.RawNames = false
		if got := e.className(c.name, nil); got != c.want {
			t.Errorf("%s is %s, not %s", c.name, got, c.want)
		}
		e.Walker.RawNames = true
		if got := e.className(c.name, nil); got != c.raw {
			t.Errorf("%s as the JVM has it is %s", c.name, got)
		}
	}
	if got := e.className("a.B", vmstructs.ErrMoved); got != profile.UnknownClass {
		t.Errorf("a class that could not be read is %s", got)
	}
}
