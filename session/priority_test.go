//go:build linux

package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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
		{priorityFacts{err: unix.EPERM}, "RLIMIT_RTPRIO is 0", "sudo goprof"},
		{priorityFacts{err: unix.EPERM, root: true, capable: true, group: "/x/cpu.rt_runtime_us"},
			"/x/cpu.rt_runtime_us is 0", "echo 100000 > /x/cpu.rt_runtime_us"},
		{priorityFacts{err: unix.EPERM, root: true, capable: true, filtered: true}, "seccomp", "seccomp=unconfined"},
		{priorityFacts{err: unix.EPERM, root: true, capable: true}, "operation not permitted", ""},
	} {
		why, cure := whyNoPriority(c.facts)
		if !strings.Contains(why, c.why) || !strings.Contains(cure, c.cure) ||
			c.facts.root && strings.Contains(cure, "sudo goprof") {
			t.Errorf("%+v: %q, %q", c.facts, why, cure)
		}
	}
}

// TestGroupWithoutTime: a container of cgroup v1 sees its own group as the root.
func TestGroupWithoutTime(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "cpu", "cpu.rt_runtime_us")
	inner := func([]byte) []string { return []string{"/docker/x"} }
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"950000\n": "", "0\n": file} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := groupWithoutTime(root, inner); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
