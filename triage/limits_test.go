//go:build linux

package triage

import (
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"goprof/profile"
	"goprof/triage/vitals"
)

// TestLimitsAreRaised: what triage says of a limit works: for a service, for a container, and at once for root. ulimit
// in another shell does not.
func TestLimitsAreRaised(t *testing.T) {
	for name, c := range map[string]struct {
		of   profile.FindingID
		ill  func(*vitals.Reading)
		want []string
	}{
		"files": {profile.FDLimit, func(r *vitals.Reading) { r.Process.FDs = known(uint64(1000)) },
			[]string{"LimitNOFILE= in its unit", "--ulimit", "as root of the host: prlimit --pid 4711 --nofile=2048"}},
		"threads": {profile.ThreadLeak, func(r *vitals.Reading) { r.Process.Threads = known(uint64(29000)) },
			[]string{"LimitNPROC= in its unit", "as root of the host: prlimit --pid 4711 --nproc=60000",
				"sysctl kernel.threads-max"}},
		"tasks": {profile.ThreadLeak, func(r *vitals.Reading) { r.Cgroup.Tasks = pool(95, 100) },
			[]string{"TasksMax= in its unit", "--pids-limit"}},
	} {
		p := healthy()
		p.PID = 4711
		c.ill(p.Readings[seconds10])
		got := Judge(p.Evidence)
		if len(got.Findings) != 1 || got.Findings[0].ID != c.of {
			t.Fatalf("%s: %+v", name, got)
		}
		for _, want := range c.want {
			if next := got.Findings[0].Next; !strings.Contains(next, want) || strings.Contains(next, "(ulimit") {
				t.Errorf("%s: %q lacks %q", name, next, want)
			}
		}
	}
}

// TestLimitCommand: the command that triage shows changes the limit of a process that runs. (It lowers the limit here:
// raising it takes CAP_SYS_RESOURCE, which containers lack.)
func TestLimitCommand(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	x := &exam{Evidence: &Evidence{PID: cmd.Process.Pid}}
	for resource, words := range map[int][2]string{
		unix.RLIMIT_NOFILE: {"NOFILE", "--nofile"}, unix.RLIMIT_NPROC: {"NPROC", "--nproc"},
	} {
		line := regexp.MustCompile("prlimit .*").FindString(x.higher(words[0], words[1], 64))
		if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v %s", line, err, out)
		}
		var now unix.Rlimit
		if err := unix.Prlimit(x.PID, resource, nil, &now); err != nil || now != (unix.Rlimit{Cur: 64, Max: 64}) {
			t.Errorf("%s: %v %+v", line, err, now)
		}
	}
}
