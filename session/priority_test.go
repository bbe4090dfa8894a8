//go:build linux

package session

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
)

// TestWhyNoPriority: each rule that keeps goprof from real-time priority is told by its name. Root is not told to
// become root.
func TestWhyNoPriority(t *testing.T) {
	for _, c := range []struct {
		facts     priorityFacts
		why, cure string
	}{
		{priorityFacts{root: true, capable: true}, "", ""},
		{priorityFacts{err: unix.EPERM, root: true}, "lacks CAP_SYS_NICE", "docker run --cap-add SYS_NICE"},
		{priorityFacts{err: unix.EPERM, root: true, inUsers: true}, "user namespace", "on the host"},
		{priorityFacts{err: unix.EPERM}, "RLIMIT_RTPRIO is 0", "sudo goprof"},
		{priorityFacts{err: unix.EPERM, root: true, capable: true, file: "/x/cpu.rt_runtime_us"},
			"/x/cpu.rt_runtime_us is 0", "echo 95000 >/x/cpu.rt_runtime_us"},
		{priorityFacts{err: unix.EPERM, root: true, capable: true, filtered: true}, "seccomp", "seccomp=unconfined"},
		{priorityFacts{err: unix.EPERM, root: true, capable: true}, "operation not permitted", ""},
	} {
		why, cure := whyNoPriority(c.facts)
		if !strings.Contains(why, c.why) || !strings.Contains(cure, c.cure) ||
			c.facts.root && strings.HasSuffix(cure, "sudo goprof ...") {
			t.Errorf("%+v: %q, %q", c.facts, why, cure)
		}
	}
}

// TestGiveRealTime: a container's group has no more time than the group above it, and only the host can give any.
func TestGiveRealTime(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	for path, want := range map[string]string{
		"/docker/" + id: "echo 100000 >/sys/fs/cgroup/cpu/docker/cpu.rt_runtime_us on the host, then docker run " +
			"--cpu-rt-runtime=95000 --cap-add SYS_NICE ...",
		"/":                       "goprof on the host",
		"/system.slice/x.service": "echo 95000 >/the/file",
	} {
		if got := giveRealTime(procfs.Group{Path: path}, "/the/file"); got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
}
