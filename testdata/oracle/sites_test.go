//go:build linux

package oracle

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"goprof/testdata/host"
	"goprof/testdata/jvmtest"
)

// site is somewhere that a JVM runs in, apart from us, as container runtimes build it.
type site struct {
	name    string
	unshare []string // options of unshare(1): its namespaces
	// root: it has a root of its own with an overlay file system, entered by chroot or by pivot_root.
	root string
	// as is whom it is started as, like "setpriv --reuid 1000"; nobody else for none.
	as []string
}

// sites are each way apart, and all at once.
var sites = []site{
	{name: "mount namespace", unshare: []string{"--mount"}},
	{name: "pid namespace", unshare: []string{"--pid", "--fork", "--kill-child", "--mount"}},
	{name: "user namespace", unshare: []string{"--user", "--map-root-user", "--mount"}},
	{name: "chroot", unshare: []string{"--mount"}, root: "chroot"},
	{name: "overlay", unshare: []string{"--mount"}, root: "pivot"},
	{name: allAtOnce, unshare: []string{"--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "--uts",
		"--ipc"}, root: "pivot"},
}

const allAtOnce = "all at once"

// needSites skips where they cannot be built.
func needSites(t *testing.T) {
	t.Helper()
	jvmtest.NotQuick(t, jvmtest.NeedsNamespace)
	host.NeedRoot(t)
	for _, tool := range []string{"unshare", "nsenter", "setpriv", "pivot_root"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs util-linux: %v", err)
		}
	}
	out, err := exec.Command("unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "sh", "-ec",
		"mount -t tmpfs none /mnt; mkdir /mnt/upper /mnt/work; mount -t overlay -o "+
			"lowerdir=/usr,upperdir=/mnt/upper,workdir=/mnt/work overlay /usr").CombinedOutput()
	if err != nil {
		t.Skipf("this machine lets nobody build a container: %v %s", err, out)
	}
}

// container is a JVM in a place.
type container struct {
	pid  int    // of the JVM, as we count
	home string // its JDK, as it says; for us something else has that name
	root string // its root, as we reach it
}

// build is how the site is made, run by sh in its namespaces. The JDK gets the name $HOMETHERE, and a root of its
// own has overlays on /usr and on the JDK, as an image's layers lie on one another. Tests delete and replace files
// there: what is no overlay can only be read, so that this never reaches the machine's own.
const build = `
readonly_bind() { mount --bind "$1" "$2"; mount -o remount,bind,ro "$2"; }
etc_of_tree() { # where the JDK has links to there (scripts/jdks.sh)
	case $JDK in
	"$TREE"/usr/*) mount -t overlay -o "lowerdir=$TREE/etc:/etc" overlay "$1" ;;
	*) return 1 ;;
	esac
}
if [ -z "$KIND" ]; then
	etc_of_tree /etc || true
	readonly_bind "$JDK" "$HOMETHERE"
	exec "$@"
fi
mount -t tmpfs none "$DIR"
mkdir -p "$DIR/upper" "$DIR/work" "$DIR/jdk" "$DIR/jdkwork" "$DIR/root"
mount -t tmpfs none "$DIR/root"
cd "$DIR/root"
mkdir -p usr etc proc tmp old
mount -t overlay -o "lowerdir=/usr,upperdir=$DIR/upper,workdir=$DIR/work" overlay usr
for d in bin sbin lib lib64; do
	if [ -L /$d ]; then cp -P /$d .; elif [ -d /$d ]; then mkdir $d; readonly_bind /$d $d; fi
done
case $JDK in
/usr/*) ;;
*) # with a C library of its own (scripts/jdks.sh)
	mkdir -p ".$TREE" "$DIR/tree" "$DIR/treework"
	mount -t overlay -o "lowerdir=$TREE,upperdir=$DIR/tree,workdir=$DIR/treework" overlay ".$TREE" ;;
esac
etc_of_tree etc || readonly_bind /etc etc
mkdir -p ".$HOMETHERE" ".$CLASSES"
mount -t overlay -o "lowerdir=$JDK,upperdir=$DIR/jdk,workdir=$DIR/jdkwork" overlay ".$HOMETHERE"
readonly_bind "$CLASSES" ".$CLASSES"
touch goprof
[ -z "$GOPROF" ] || readonly_bind "$GOPROF" goprof
mount -t proc none proc 2>/dev/null || mount --rbind /proc proc
if [ "$KIND" = chroot ]; then exec chroot . "$@"; fi
pivot_root . old
cd /
umount -l /old
exec "$@"
`

// start starts a program of testdata/java in a place. There and here the same name stands for different files:
// there for the JDK, here for a pipe that holds up whoever opens it.
func (p site) start(t *testing.T, jdk jvmtest.JDK, goprof, class string, options ...string) container {
	t.Helper()
	dir, err := os.MkdirTemp("", "goprof-place-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	home := filepath.Join(dir, "jdk")
	if err := errors.Join(os.Chmod(dir, 0o755), os.MkdirAll(filepath.Join(home, "lib", "server"), 0o755),
		os.Mkdir(filepath.Join(dir, "root"), 0o755),
		syscall.Mkfifo(filepath.Join(home, "lib", "server", "libjvm.so"), 0o666)); err != nil {
		t.Fatal(err)
	}
	classes := jvmtest.Classes(t)
	line := jvmtest.CommandLine(t, jdk, class, options...)
	line[0] = filepath.Join(home, "bin", "java")
	args := slices.Concat(p.as, []string{"unshare"}, p.unshare, []string{"sh", "-euc", build, "sh"}, line)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "KIND="+p.root, "DIR="+filepath.Join(dir, "root"), "JDK="+jdk.Home, "TREE="+treeOf(jdk),
		"HOMETHERE="+home, "CLASSES="+classes, "GOPROF="+goprof)
	pid := host.StartReady(t, cmd)
	if slices.Contains(p.unshare, "--fork") {
		pid = host.OnlyChild(t, pid)
	}
	return container{pid: pid, home: home, root: "/proc/" + strconv.Itoa(pid) + "/root"}
}

// treeOf is what a JDK needs beside itself: one of scripts/jdks.sh lies in a tree with its own C library.
func treeOf(jdk jvmtest.JDK) string {
	if tree, _, ok := strings.Cut(jdk.Home, "/usr/"); ok && tree != "" {
		return tree
	}
	return jdk.Home
}

// ran is what a command has said.
type ran struct {
	out, err string
	code     int
}

func runIt(t *testing.T, args ...string) ran {
	t.Helper()
	var out, err bytes.Buffer
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.TempDir(), &out, &err
	if e := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(args, e)
	}
	return ran{out.String(), err.String(), cmd.ProcessState.ExitCode()}
}

// runIfSampled runs goprof again where a recording has no samples, or a dump lacks stacks: there was no CPU for it.
func runIfSampled(t *testing.T, args ...string) (r ran) {
	t.Helper()
	for range 20 {
		if r = runIt(t, args...); r.code != noSample && r.code != notComplete {
			break
		}
	}
	return r
}

// Exit codes of goprof's for what was not to be had on a machine that had no CPU for it.
const noSample, notComplete = 7, 10

// recordShares records truth.Shares until it is seen, by a command without its duration: a machine may give goprof no
// CPU for a second.
func recordShares(t *testing.T, command ...string) (r ran) {
	t.Helper()
	for range 30 {
		r = runIt(t, append(slices.Clip(command), "-d", "1")...)
		if strings.Contains(r.out, "truth.Shares.") || r.code != 0 && r.code != noSample {
			break
		}
	}
	return r
}

// wantError wants that a command fails, with these words.
func (r ran) wantError(t *testing.T, code int, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(r.err, word) {
			t.Errorf("no %q", word)
		}
	}
	if r.code != code || t.Failed() {
		t.Errorf("exit code %d, want %d\n%s", r.code, code, r.err)
	}
}

// without is a command line that runs the rest without some capabilities, as in a container.
func without(capabilities ...string) []string {
	return []string{"setpriv", "--bounding-set=-" + strings.Join(capabilities, ",-")}
}

// weak may not open what is mapped, but by its name.
var weak = without("sys_admin", "checkpoint_restore")
