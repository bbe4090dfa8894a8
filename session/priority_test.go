//go:build linux

package session

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
	"goprof/sampler"
	"goprof/sampler/ptrace"
)

// TestWhyNoPriority: the reason names the rule that keeps goprof from real-time priority. A user who is root is not
// advised to become root.
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

// TestHindrancesInWords: each reason why goprof had no CPU has a cause and a cure. No cure removes a protection of the
// whole machine.
func TestHindrancesInWords(t *testing.T) {
	for h := ptrace.NoHindrance + 1; int(h) < ptrace.NumHindrances; h++ {
		why, cure := inWords(h)
		if why == "" || cure == "" || strings.Contains(cure, "sched_rt_runtime_us") {
			t.Errorf("%d: %q, %q", h, why, cure)
		}
	}
}

// TestWithoutVisits: if goprof visits no CPUs, the note has the actual cause, and no other cause's cure.
func TestWithoutVisits(t *testing.T) {
	lacks := func() (why, cure string) { return "it lacks CAP_SYS_NICE", "sudo goprof ..." }
	has := func() (why, cure string) { return "", "" }
	for _, c := range []struct {
		n          sampler.NoVisits
		noPriority func() (why, cure string)
		why, cure  string
	}{
		{sampler.NoPreempters, lacks, "it lacks CAP_SYS_NICE", "sudo goprof ..."},
		{sampler.NoPreempters, has, "", ""},
		{sampler.OtherCPUs, lacks, "may not use all CPUs", "taskset"},
		{sampler.OneCPU, has, "one CPU only", ""},
		{sampler.MetNobody, has, "too late", ""},
		{sampler.VisitorTraced, has, "traced itself", "without strace"},
		{sampler.NoSchedstat, has, "CONFIG_SCHED_INFO", ""},
		{0, lacks, "", ""},
	} {
		why, cure := withoutVisits(c.n, c.noPriority)
		if !strings.Contains(why, c.why) || !strings.Contains(cure, c.cure) || (why == "") != (c.why == "") ||
			(cure == "") != (c.cure == "") {
			t.Errorf("%d: %q, %q", c.n, why, cure)
		}
	}
}

// TestGiveRealTime: a container's group has no more time than the group above it, and only the host can give it time.
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
