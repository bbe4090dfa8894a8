//go:build linux

package oracle

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/testdata/host"
	"goprof/testdata/jvmtest"
)

// TestPodman: the commands of README.md and docs/operations.md for containers do what stands beside them. Podman runs
// them in docker's place. The JVM is confined as production does it: docker's filter of system calls, another user, no
// capability, limits, a root that cannot be written.
func TestPodman(t *testing.T) {
	t.Parallel()
	p := newPods(t)
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		p.runJVM(t, p.docker, jdk, "petclinic", "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
			"--user", "1000:1000", "--memory", "512m", "--cpus", "1.5")
		pid := p.pidOf(t, p.docker, "petclinic")
		t.Run("from the host", func(t *testing.T) { p.fromHost(t, pid) })
		t.Run("README", func(t *testing.T) {
			for _, line := range commands(t, "../../README.md", "**Docker**") {
				r := p.sh(t, line)
				for tries := 0; tries < 5 && r.code == noSample; tries++ {
					r = p.sh(t, line)
				}
				p.wantRecording(t, r, false)
			}
		})
		t.Run("beside", p.beside)
		t.Run("DaemonSet", p.daemonSet)
		t.Run("paused", func(t *testing.T) { p.paused(t, pid) })
	})
}

// TestPodmanOfAUser: a user without any right of root runs a container, and looks into it.
func TestPodmanOfAUser(t *testing.T) {
	p := newPods(t)
	home := filepath.Join(p.dir, "home")
	if err := errors.Join(os.Mkdir(home, 0o700), os.Chown(home, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	nobody := []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "--chdir=" + home,
		"HOME=" + home, "XDG_RUNTIME_DIR=" + home}
	docker := append(slices.Clip(nobody), filepath.Join(p.dir, "bin", "docker"))
	// A process of podman's own keeps the user namespace.
	t.Cleanup(func() { runIt(t, append(slices.Clone(docker), "system", "migrate")...) })
	if err := p.loadImage(docker); err != nil {
		t.Skipf("podman without root does not work here: %v", err)
	}
	jdk := jvmtest.JDKs(t)
	p.runJVM(t, docker, jdk[len(jdk)-1], "petclinic")
	pid := strconv.Itoa(p.pidOf(t, docker, "petclinic"))
	goprof := filepath.Join(p.dir, "bin", "goprof")
	for name, dump := range map[string][]string{
		"root":     {goprof, "dump", pid},
		"the user": append(slices.Clip(nobody), goprof, "dump", pid),
		"beside it": slices.Concat(docker, []string{"run", "--rm", "--pid=container:petclinic", "--cap-add", "SYS_PTRACE",
			"-v", goprof + ":/goprof", "debian", "/goprof", "dump", "1"}),
	} {
		r := runIt(t, dump...)
		if r.code != 0 && r.code != 10 || !strings.Contains(r.out, "truth.Shares.main") { // 10: some thread has no stack
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// pods are containers with a storage of their own, which is gone after the test.
type pods struct {
	dir    string   // bin/docker, bin/goprof, and the storage
	docker []string // the command
}

// dockerIsPodman is the command docker. This machine may lack the right to raise limits, and bridges of networks.
const dockerIsPodman = `#!/bin/sh
runtime=$(command -v runc || command -v crun)
here=$(dirname "$0")
CONTAINERS_CONF=$here/containers.conf exec podman --runtime "$runtime" --root "${here%/bin}/$(id -u)" \
	--runroot "${here%/bin}/$(id -u)/run" --storage-driver vfs --cgroup-manager cgroupfs --log-level error "$@"
`

const containersConf = "[containers]\ndefault_ulimits = []\nnetns = \"none\"\n"

func newPods(t *testing.T) *pods {
	t.Helper()
	needSites(t)
	if _, err := exec.LookPath("podman"); err != nil {
		t.Skip("NOT TRIED: what the documentation says of containers (no podman: scripts/tools.sh podman runc installs it)")
	}
	goprof := buildGoprof(t)
	dir, err := os.MkdirTemp("", "goprof-pod-") // podman wants short names

	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "bin")
	p := &pods{dir: dir, docker: []string{filepath.Join(bin, "docker")}}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := errors.Join(os.Chmod(dir, 0o777), os.Mkdir(bin, 0o755),
		os.WriteFile(p.docker[0], []byte(dockerIsPodman), 0o755),
		os.WriteFile(filepath.Join(bin, "containers.conf"), []byte(containersConf), 0o644),
		os.WriteFile(filepath.Join(dir, "root.tar"), emptyRoot(t), 0o644)); err != nil {
		t.Fatal(err)
	}
	host.CopyFile(t, filepath.Join(bin, "goprof"), goprof)
	if err := p.loadImage(p.docker); err != nil {
		t.Skipf("NOT TRIED: what the documentation says of containers (podman runs none here: %v)", err)
	}
	return p
}

// loadImage makes the image debian: a root without any file. Its containers have this machine's programs.
func (p *pods) loadImage(docker []string) error {
	for _, args := range [][]string{{"import", "-q", filepath.Join(p.dir, "root.tar"), "debian"},
		{"run", "--rm", "-v", p.dir + "/bin:/bin", "debian", "/bin/goprof", "version"}} {
		line := slices.Concat(docker, args)
		cmd := exec.Command(line[0], line[1:]...)
		cmd.Dir = p.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return errors.New(err.Error() + ": " + string(out))
		}
	}
	return nil
}

// emptyRoot is an archive of the folders that a container wants, and of the links into /usr.
func emptyRoot(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(h tar.Header) {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"usr", "proc", "sys", "dev", "tmp", "etc", "run"} {
		add(tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755})
	}
	for _, link := range []string{"lib", "lib64"} {
		add(tar.Header{Typeflag: tar.TypeSymlink, Name: link, Linkname: "usr/" + link, Mode: 0o777})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// runJVM runs petclinic.jar in a container until the test ends.
func (p *pods) runJVM(t *testing.T, docker []string, jdk jvmtest.JDK, name string, options ...string) {
	t.Helper()
	jar := jvmtest.PublicJar(t, "petclinic.jar", "truth.Shares")
	mounts := []string{"-v", "/usr:/usr:ro", "-v", jar + ":/petclinic.jar:ro"}
	tree, etc := treeOf(jdk), "/etc"
	if !strings.HasPrefix(jdk.Home, "/usr/") {
		mounts = append(mounts, "-v", tree+":"+tree+":ro")
		etc = tree + "/etc"
	}
	links, _ := filepath.Glob(etc + "/java-*") // of Debian's JDKs: their configuration
	for _, dir := range links {
		mounts = append(mounts, "-v", dir+":/etc/"+filepath.Base(dir)+":ro")
	}
	line := slices.Concat(docker, []string{"run", "-i", "--rm", "--name", name}, options, mounts,
		[]string{"debian", jdk.Tool("java"), "-jar", "/petclinic.jar", "2", "2", "6"})
	t.Cleanup(func() {
		rm := slices.Concat(docker, []string{"rm", "--force", "--all", "--time", "0"})
		host.WaitFor(t, "the containers are gone", func() bool { // one that just ends cannot be removed
			cmd := exec.Command(rm[0], rm[1:]...)
			cmd.Dir = p.dir
			return cmd.Run() == nil
		})
	})
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir = p.dir
	host.StartReady(t, cmd)
}

// pidOf is the first process of a container, as the host counts.
func (p *pods) pidOf(t *testing.T, docker []string, name string) int {
	t.Helper()
	line := slices.Concat(docker, []string{"inspect", "--format", "{{.State.Pid}}", name})
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir = p.dir
	out, err := cmd.Output()
	pid, notPID := strconv.Atoi(strings.TrimSpace(string(out)))
	if err := errors.Join(err, notPID); err != nil {
		t.Fatal(err)
	}
	return pid
}

// sh runs a command line of the documentation, in a folder of its own, with goprof where it is here, and for less time.
func (p *pods) sh(t *testing.T, line string) ran {
	t.Helper()
	line = strings.NewReplacer("/usr/local/bin/goprof", filepath.Join(p.dir, "bin", "goprof"), "30s", "2s").Replace(line)
	r := runIt(t, "env", "PATH="+filepath.Join(p.dir, "bin")+":"+os.Getenv("PATH"), "sh", "-c",
		line+"\ncode=$?; cat out.collapsed 2>/dev/null; exit $code")
	t.Logf("%s\nexit code %d, in the end: %s", line, r.code, r.err[max(0, len(r.err)-2000):])
	return r
}

// commands are the command lines in the first block of code behind some words of a page. A line that ends with a
// backslash goes on.
func commands(t *testing.T, page, behind string) []string {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(b), behind)
	_, text, begins := strings.Cut(text, "\n```\n")
	text, _, ends := strings.Cut(text, "\n```\n")
	if !found || !begins || !ends {
		t.Fatalf("%s: there is no block of commands behind %q", page, behind)
	}
	return strings.Split(strings.ReplaceAll(text, "\\\n", " "), "\n")
}

var heldLongest = regexp.MustCompile(`longest ([\d.]+) (\S+)`)

// wantRecording wants samples. Where goprof may have no CPU (limited, or this machine is busy and gives it no real-time
// priority) it may leave stops out, and says so. No thread is held for longer than 100 ms, or the account says so.
func (p *pods) wantRecording(t *testing.T, r ran, limited bool) {
	t.Helper()
	account := r.err + r.out // a terminal shows both
	saidHold := strings.Contains(account, "held for longer than")
	said := strings.Contains(account, "might have been held for too long") || saidHold
	switch {
	case r.code == 0 && strings.Contains(r.out, "truth.Shares."):
	case (r.code == 0 || r.code == 7) && said: // 7: no sample
	case r.code == 7 && limited && strings.Contains(account, "were lost: "):
	default:
		t.Errorf("exit code %d, nothing recorded", r.code)
	}
	if m := heldLongest.FindStringSubmatch(account); m != nil {
		longest, err := time.ParseDuration(m[1] + strings.ReplaceAll(m[2], ";", ""))
		if err != nil || longest > 150*time.Millisecond && !saidHold {
			t.Errorf("held for %s %s, which the account calls no fault (%v)", m[1], m[2], err)
		}
	}
}

// fromHost: the commands of docs/operations.md that name this JVM.
func (p *pods) fromHost(t *testing.T, pid int) {
	tried := 0
	for _, line := range commands(t, "../../docs/operations.md", "## Containers") {
		command, _, _ := strings.Cut(line, " #")
		if strings.Contains(command, "17") {
			continue // of no process here
		}
		command = strings.Replace(command, "4711", strconv.Itoa(pid), 1) // which may have a 17 in it, too
		tried++
		switch r := p.sh(t, command); {
		case strings.Contains(command, "record"):
			for tries := 0; tries < 5 && r.code == noSample; tries++ {
				r = p.sh(t, command)
			}
			p.wantRecording(t, r, false)
		case r.code != 0 || !strings.Contains(r.out, "petclinic.jar"):
			t.Errorf("%s: %+v", command, r)
		}
	}
	if tried < 3 {
		t.Errorf("%d commands", tried)
	}
}

// besideWants are what the lines of docs/operations.md promise, by the words behind them.
var besideWants = map[string]func(t *testing.T, p *pods, r ran){
	"by stops": func(t *testing.T, p *pods, r ran) { p.wantRecording(t, r, false) },
	"only as many stops as its limit permits": func(t *testing.T, p *pods, r ran) { p.wantRecording(t, r, true) },
	"with a read-only root":                   func(t *testing.T, p *pods, r ran) { p.wantRecording(t, r, false) },
	"another user's threads, without a stop": func(t *testing.T, p *pods, r ran) {
		if r.code != 0 || !strings.Contains(r.out, "truth.Shares.main") || strings.Contains(r.out, "not permitted") {
			t.Errorf("%+v", r)
		}
	},
	"refuses: it lacks SYS_PTRACE": func(t *testing.T, p *pods, r ran) {
		r.wantError(t, 5, "lacks CAP_SYS_PTRACE", "docker run --cap-add SYS_PTRACE --pid container:")
	},
	"all JVMs of the host": func(t *testing.T, p *pods, r ran) {
		if r.code != 0 || !strings.Contains(r.out, "petclinic.jar") {
			t.Errorf("%+v", r)
		}
	},
}

// beside: goprof in a container of its own beside the JVM's.
func (p *pods) beside(t *testing.T) {
	lines := commands(t, "../../docs/operations.md", "**Beside the JVM's container.**")
	for _, line := range lines[1:] {
		command, promise, _ := strings.Cut(line, " # ")
		want := besideWants[promise]
		if want == nil {
			t.Errorf("%q: no test of %q", line, promise)
			continue
		}
		t.Run(promise, func(t *testing.T) {
			r := p.sh(t, lines[0]+"\n"+command)
			for tries := 0; tries < 5 && (r.code == noSample || r.code == notComplete); tries++ {
				r = p.sh(t, lines[0]+"\n"+command)
			}
			want(t, p, r)
		})
	}
}

// daemonSet: an agent with the rights that scripts/kubernetes/base/agent.yaml asks for, and no others, records the JVM.
func (p *pods) daemonSet(t *testing.T) {
	b, err := os.ReadFile("../../scripts/kubernetes/base/agent.yaml")
	if err != nil {
		t.Fatal(err)
	}
	add := regexp.MustCompile(`(?m)^ +add: \[(.*)\]`).FindSubmatch(b)
	for _, want := range []string{"hostPID: true", "drop: [ALL]", "seccompProfile: {type: Unconfined}",
		"readOnlyRootFilesystem: true", "allowPrivilegeEscalation: false", "runAsUser: 0"} {
		if add == nil || !bytes.Contains(b, []byte(want)) {
			t.Fatalf("the file does not say %q any more", want)
		}
	}
	folder := t.TempDir()
	line := append(slices.Clone(p.docker), "run", "--rm", "--name", "agent", "--pid=host", "--read-only", "--user", "0",
		"--security-opt", "seccomp=unconfined", "--security-opt", "no-new-privileges", "--memory", "512m",
		"--cap-drop", "ALL")
	for right := range strings.SplitSeq(string(add[1]), ", ") {
		line = append(line, "--cap-add", right)
	}
	line = append(line, "-v", filepath.Join(p.dir, "bin", "goprof")+":/goprof", "-v", folder+":/spool", "debian",
		"/goprof", "agent", "--match", "petclinic", "--files", "/spool", "--every", "3s")
	var said bytes.Buffer
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	host.WaitFor(t, "a batch of the JVM", func() bool {
		batches, _ := filepath.Glob(filepath.Join(folder, "*.pb.gz"))
		return len(batches) > 0
	})
	runIt(t, append(slices.Clone(p.docker), "kill", "--signal", "TERM", "agent")...)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, &said)
	}
	t.Logf("%s", &said)
}

// paused: docker pause is named, also where goprof does not see the group that does it.
func (p *pods) paused(t *testing.T, pid int) {
	if r := p.sh(t, "docker pause petclinic"); r.code != 0 {
		t.Skipf("nothing can be paused here: %s", r.err)
	}
	defer p.sh(t, "docker unpause petclinic")
	beside := commands(t, "../../docs/operations.md", "**Beside the JVM's container.**")[0]
	for _, goprof := range []string{"goprof record --pid " + strconv.Itoa(pid),
		beside + "\nbeside --cap-add SYS_PTRACE debian /goprof record --pid 1"} {
		p.sh(t, goprof+" -d 1s").wantError(t, 7, "frozen", "docker unpause ", "no thread runs")
	}
	r := p.sh(t, beside+"\nbeside --cap-add SYS_PTRACE debian /goprof dump 1")
	if r.code != 0 && r.code != notComplete || !strings.Contains(r.out, "truth.Shares.main") ||
		!strings.Contains(r.err, "frozen") {
		t.Errorf("%+v", r)
	}
}
