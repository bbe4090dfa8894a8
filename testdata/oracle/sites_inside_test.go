//go:build linux

package oracle

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"goprof/testdata/host"
	"goprof/testdata/jvmtest"
)

// dockerLacks is what a container's root has not, of what concerns us (moby, daemon/pkg/oci/caps: the default set).
var dockerLacks = []string{"sys_admin", "checkpoint_restore", "sys_ptrace"}

// TestInside: goprof runs in the JVM's own container, as with docker exec or kubectl debug.
func TestInside(t *testing.T) {
	// Not beside others: without real-time priority goprof stops no thread on a busy machine.
	needSites(t)
	goprof := buildGoprof(t)
	jdk := jvmtest.JDKs(t)[0]
	here := jvmtest.Start(t, jdk, "truth.Shares", "--", "1", "1", "6")
	want, _ := dumpAtRest(t, []string{goprof}, here.PID)
	for _, at := range jvmtest.Drawn(t, 1, []site{
		{name: "root", unshare: []string{"--mount", "--pid", "--fork", "--kill-child"}, root: "pivot"},
		{name: "own users", unshare: []string{"--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child"},
			root: "pivot"},
	}) {
		t.Run(at.name, func(t *testing.T) {
			c := at.start(t, jdk, goprof, "truth.Shares", "--", "1", "1", "6")
			inside := append(c.enter(t), "/goprof")
			stacks, said := dumpAtRest(t, inside, 1)
			sameStacks(t, stacks, want)
			if said != "" {
				t.Errorf("dump says %s", said)
			}
			run := func(args ...string) ran { return runIt(t, append(slices.Clone(inside), args...)...) }
			r := recordShares(t, append(slices.Clone(inside), "record", "--pid", "1", "-o", "-")...)
			if r.code != 0 || !strings.Contains(r.out, "truth.Shares.") {
				t.Errorf("record: %+v", r)
			}
			if r := run("list"); !strings.Contains(r.out, "\n1 ") || strings.Contains(r.out, strconv.Itoa(c.pid)) {
				t.Errorf("list: %+v", r)
			}
			if r := run("doctor", "--pid", "1"); r.code != 0 || !strings.Contains(r.out, "warn  namespaces") {
				t.Errorf("doctor: %+v", r)
			}
			run("dump", "--pid", strconv.Itoa(here.PID)).wantError(t, 3, "goprof's own pid namespace", "--pid container:NAME")
			// Without what docker gives to nobody who does not ask: the cause, and what mends it.
			weakest := append(c.enter(t, dockerLacks...), "/goprof", "dump", "--pid", "1")
			runIt(t, weakest...).wantError(t, 5, "lacks CAP_SYS_PTRACE", "--cap-add SYS_PTRACE")
		})
	}
}

// enter is a command line that runs the rest in a container, without some capabilities (weak's, if none are named).
func (c container) enter(t *testing.T, lacks ...string) []string {
	t.Helper()
	if lacks == nil {
		lacks = []string{"sys_admin", "checkpoint_restore"}
	}
	kinds := []string{"--mount", "--pid"}
	ours, _ := os.Readlink("/proc/self/ns/user")
	if theirs, _ := os.Readlink("/proc/" + strconv.Itoa(c.pid) + "/ns/user"); theirs != ours {
		kinds = append(kinds, "--user")
	}
	return slices.Concat([]string{"nsenter", "--target", strconv.Itoa(c.pid)}, kinds, without(lacks...))
}

// TestForeignProc: by the numbers of another namespace's /proc, goprof would stop other processes than it was told to.
func TestForeignProc(t *testing.T) {
	t.Parallel()
	needSites(t)
	goprof := buildGoprof(t)
	for name, c := range map[string]struct {
		unshare []string
		before  string
		says    string
	}{
		"the host's": {[]string{"--pid", "--fork"}, "true", "/proc shows another pid namespace"},
		"a container's": {[]string{"--mount"}, "unshare --pid --fork mount -t proc none /proc",
			"/proc shows another pid namespace"},
		"none": {[]string{"--mount"}, "umount -l /proc", "/proc is not mounted"},
		"a folder for /proc": {[]string{"--mount"},
			"mount -t tmpfs none /proc; mkdir /proc/self; echo 'Tgid: 1' >/proc/self/status", "/proc is not mounted"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, args := range []string{"list", "dump --pid 1", "dump nothing", "record --pid 1 -d 1",
				"record --ns-pid 1 -d 1", "doctor", "doctor --pid 1"} {
				r := runIt(t, slices.Concat([]string{"unshare"}, c.unshare,
					[]string{"sh", "-c", c.before + "; exec " + goprof + " " + args})...)
				r.wantError(t, 5, c.says, "mount -t proc ")
			}
		})
	}
	// And with one of its own it sees its own.
	r := runIt(t, "unshare", "--pid", "--fork", "--mount-proc", goprof, "list")
	if r.code != 0 || !strings.Contains(r.out, "sees no JVM") {
		t.Errorf("%+v", r)
	}
	runIt(t, "unshare", "--pid", "--fork", "--mount-proc", goprof, "dump", "--pid", "4000000").wantError(t, 3,
		"no such process in goprof's own pid namespace")
}

// TestUsersOfTheirOwn: who has made a user namespace may look into it; from within, nobody may look out.
func TestUsersOfTheirOwn(t *testing.T) {
	t.Parallel()
	needSites(t)
	goprof := buildGoprof(t)
	jdk := jvmtest.JDKs(t)[0]
	nobody := []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}
	classes := jvmtest.CommandLine(t, jdk, "truth.Named")
	line := slices.Concat(nobody, []string{"unshare", "--user", "--map-root-user"}, classes)
	if out, err := exec.Command(nobody[0], append(slices.Clone(nobody[1:]), "test", "-r", classes[2], "-a", "-x",
		classes[0])...).CombinedOutput(); err != nil {
		t.Skipf("a user without rights may not read the JDK or the tests' programs: %v %s", err, out)
	}
	pid := host.StartReady(t, exec.Command(line[0], line[1:]...))
	goprof = publicCopy(t, goprof)
	for name, who := range map[string][]string{"root": nil, "the same user": nobody} {
		stacks, said := dumpAtRest(t, append(slices.Clone(who), goprof), pid)
		if !strings.Contains(stacks["main"], "truth.Named.main") || said != "" {
			t.Errorf("%s: %s%s", name, stacks["main"], said)
		}
	}
	ours := jvmtest.Start(t, jdk, "truth.Named")
	r := runIt(t, "unshare", "--user", "--map-root-user", goprof, "dump", "--pid", strconv.Itoa(ours.PID))
	r.wantError(t, 5, "in another user namespace", "as root of the host")
}

// publicCopy copies a program to where every user may run it.
func publicCopy(t *testing.T, program string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "goprof-public-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, filepath.Base(program))
	host.CopyFile(t, path, program)
	return path
}
