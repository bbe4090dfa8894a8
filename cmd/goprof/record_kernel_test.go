//go:build linux

package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"goprof/cmd/goprof/exit"
	"goprof/testdata/jvmtest"
)

// TestKernelIsForbidden: where the kernel does not let goprof look into it, or hides the names of its functions, goprof
// says so once, and records what it may.
func TestKernelIsForbidden(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give up rights that others never had")
	}
	if restrict := kernelSetting(t, "kptr_restrict"); restrict > 1 {
		t.Skipf("kernel.kptr_restrict is %d here: nobody sees names", restrict)
	}
	jvm := jvmtest.Start(t, jvmtest.JDKs(t)[0], "truth.Allocating", "-Xmx128m", "--", "2000000000", "2")
	for name, c := range map[string]struct {
		without []uintptr // capabilities
		code    exit.Code
		says    string
		frames  bool // of the kernel's, without names
	}{
		"no names": {[]uintptr{unix.CAP_SYSLOG}, exit.OK, "kernel.kptr_restrict=0", true},
		"no frames": {[]uintptr{unix.CAP_SYSLOG, unix.CAP_SYS_ADMIN, unix.CAP_PERFMON}, exit.NotPermitted,
			"BPF programs need CAP_BPF and CAP_PERFMON", false},
		"all": {nil, exit.OK, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out.collapsed")
			code, told := runWithout(t, c.without, "record", "--pid", strconv.Itoa(jvm.PID), "-d", "3", "-r", "1000",
				"--engine", "perf", "--kernel", "-o", out)
			stacks, err := os.ReadFile(out)
			if code != c.code || (err == nil) != (code == exit.OK) {
				t.Fatalf("exit code %d, %v: %s", code, err, told)
			}
			for _, says := range []string{"kernel.kptr_restrict=0", "BPF programs need CAP_BPF and CAP_PERFMON"} {
				want := 0
				if says == c.says {
					want = 1
				}
				if n := strings.Count(told, says); n != want {
					t.Errorf("%s is said %d times, not %d: %s", says, n, want, told)
				}
			}
			if nameless := strings.Contains(string(stacks), "[kernel]_[k]"); nameless != c.frames {
				t.Errorf("frames of the kernel without names: %t, not %t", nameless, c.frames)
			}
		})
	}
}

// kernelSetting is a number of /proc/sys/kernel.
func kernelSetting(t *testing.T, name string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/sys/kernel/" + name)
	if err != nil {
		t.Skipf("this kernel has no such setting: %v", err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// runWithout runs goprof as root without some capabilities.
func runWithout(t *testing.T, capabilities []uintptr, args ...string) (code exit.Code, told string) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the OS thread, which has lost these rights, ends
		for _, c := range capabilities {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
				t.Errorf("capability %d: %v", c, err)
			}
		}
		code, told = runGoprof(t, args...)
	}()
	<-done
	return code, told
}
