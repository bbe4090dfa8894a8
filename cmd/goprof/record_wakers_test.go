//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"goprof/cmd/goprof/exit"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// TestWakersForbidden: goprof says which right it lacks to find out what ends waits, and records nothing else instead.
func TestWakersForbidden(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give up rights that others never had")
	}
	jvm := jvmtest.Start(t, jvmtest.JDKs(t)[0], "truth.Guest", "--", "5", "15")
	if err := session.TryWakers(jvm.PID); err != nil {
		t.Skipf("the kernel notes no wake-ups here: %v", err)
	}
	for name, c := range map[string]struct {
		without []uintptr // capabilities
		says    string
	}{
		"names": {[]uintptr{unix.CAP_SYSLOG}, "the kernel hides the addresses of its functions"},
		"BPF":   {[]uintptr{unix.CAP_SYS_ADMIN, unix.CAP_BPF}, "BPF programs need CAP_BPF and CAP_PERFMON"},
	} {
		out := filepath.Join(t.TempDir(), "out.collapsed")
		code, told := runWithout(t, c.without, "record", "--pid", strconv.Itoa(jvm.PID), "-d", "1", "--event", "off-cpu",
			"--wakers", "-o", out)
		if code != exit.NoEvent || !strings.Contains(told, c.says) || !strings.Contains(told, "\ntry: ") {
			t.Errorf("%s: exit code %d: %s", name, code, told)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: there are stacks", name)
		}
	}
}
