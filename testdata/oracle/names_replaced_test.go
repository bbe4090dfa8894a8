//go:build linux

package oracle

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"goprof/profile"
	"goprof/testdata/jvmtest"
)

// TestLibrariesReplaced: while a JVM runs, an upgrade takes the files of its libraries away. Names come from what is
// mapped, whatever has its name by now. Who may not open that sees exported names, is told so, and never
// sees a name out of the other file.
func TestLibrariesReplaced(t *testing.T) {
	t.Parallel()
	needSites(t)
	goprof := buildGoprof(t)
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		if jdk.Stripped(t) {
			t.Skip("its libjvm.so has no symbols: there are no names to be missing")
		}
		changes := map[string]func(file string) error{
			"deleted": os.Remove,
			"renamed": func(file string) error { return os.Rename(file, filepath.Join(filepath.Dir(file), "moved away")) },
			"replaced": func(file string) error {
				return errors.Join(os.Remove(file), exec.Command("cp", otherThan(t, jdk, file), file).Run())
			},
			"a pipe": func(file string) error { return errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o666)) },
		}
		for _, name := range append([]string{"replaced"}, jvmtest.Drawn(t, 1, []string{"deleted", "renamed", "a pipe"})...) {
			t.Run(name, func(t *testing.T) {
				c := sites[len(sites)-1].start(t, jdk, "", "truth.Shares", "--", "1", "1")
				before, _ := dumpNamed(t, []string{goprof}, c.pid)
				for _, library := range []string{"libjvm.so", "libc.so.6"} {
					file := c.root + mapped(t, c.pid, library)
					mustBeOverlaid(t, c.pid, file)
					if err := changes[name](file); err != nil {
						t.Fatal(err)
					}
				}
				after, said := dumpNamed(t, []string{goprof}, c.pid)
				sameStacks(t, after, before)
				if said != "" {
					t.Errorf("dump says %s", said)
				}
				after, said = dumpNamed(t, append(slices.Clone(weak), goprof), c.pid)
				missing := lesserStacks(t, after, before)
				if name == "renamed" && missing != 0 {
					t.Errorf("%d names are missing though the file is there", missing)
				}
				checkNote(t, said, missing)
				if missing > 0 {
					checkNotesOfSummary(t, goprof, c)
				}
				if name == "replaced" || longForm {
					checkReplaced(t, goprof, c)
				}
			})
		}
	})
}

// dumpNamed is dumpAtRest without the name of the file in frames that have no other: it may be renamed.
func dumpNamed(t *testing.T, command []string, pid int) (stacks map[string]string, said string) {
	t.Helper()
	stacks, said = dumpAtRest(t, command, pid)
	for thread, stack := range stacks {
		stacks[thread] = noSymbol.ReplaceAllString(stack, "$1")
	}
	return stacks, said
}

var noSymbol = regexp.MustCompile(`(?m)^.*(\+0x[0-9a-f]+)$`)

// mustBeOverlaid ends the test where a change of a file would be one of this machine's own: it must lie on an overlay,
// and on one that we have not mounted ourselves, as where this machine's root is an overlay.
func mustBeOverlaid(t *testing.T, pid int, file string) {
	t.Helper()
	var fs unix.Statfs_t
	if err := unix.Statfs(file, &fs); err != nil || fs.Type != unix.OVERLAYFS_SUPER_MAGIC {
		t.Fatalf("%s is no file of the container's alone: file system %#x, %v", file, fs.Type, err)
	}
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, file, 0, unix.STATX_MNT_ID, &st); err != nil || st.Mask&unix.STATX_MNT_ID == 0 {
		t.Fatalf("nobody knows which mount %s lies on: %v", file, err)
	}
	_, there := mounts(t, strconv.Itoa(pid))
	ours, _ := mounts(t, "self")
	if device := there[strconv.FormatUint(st.Mnt_id, 10)]; device == "" || ours[device] {
		t.Fatalf("%s is no file of the container's alone: this machine has its file system %q, too", file, device)
	}
}

// mounts lists the file systems that a process has mounted, and by the number of each mount which it is (proc(5),
// mountinfo).
func mounts(t *testing.T, pid string) (devices map[string]bool, byMount map[string]string) {
	t.Helper()
	info, err := os.ReadFile("/proc/" + pid + "/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	devices, byMount = map[string]bool{}, map[string]string{}
	for line := range strings.Lines(string(info)) {
		if f := strings.Fields(line); len(f) > 2 {
			devices[f[2]], byMount[f[0]] = true, f[2]
		}
	}
	return devices, byMount
}

// otherThan is a library that is not the JDK's own: another JDK's, or any.
func otherThan(t *testing.T, jdk jvmtest.JDK, file string) string {
	t.Helper()
	for _, other := range jvmtest.JDKs(t) {
		if found, _ := filepath.Glob(filepath.Join(other.Home, "lib", "server",
			filepath.Base(file))); other.Home != jdk.Home && len(found) == 1 {
			return found[0]
		}
	}
	return "/proc/self/exe"
}

// lesserStacks wants the same frames, each with its name or with an address in its library, and counts the latter.
func lesserStacks(t *testing.T, got, want map[string]string) (missing int) {
	t.Helper()
	for thread, stack := range want {
		names, is := strings.Split(stack, "\n"), strings.Split(got[thread], "\n")
		if len(names) != len(is) {
			t.Errorf("%s:\n%s\nwant\n%s", thread, got[thread], stack)
			continue
		}
		for i, name := range names {
			if is[i] == name {
				continue
			}
			if missing++; !strings.HasPrefix(is[i], "+0x") {
				t.Errorf("%s: frame %d is %s, and was %s", thread, i, is[i], name)
			}
		}
	}
	return missing
}

// checkNote wants to be told of names that are missing.
func checkNote(t *testing.T, said string, missing int) {
	t.Helper()
	if missing == 0 {
		return
	}
	for _, word := range []string{"goprof: library-", "libjvm.so", "have no names",
		"try: docker run --cap-add CHECKPOINT_RESTORE"} {
		if !strings.Contains(said, word) {
			t.Errorf("no %q though %d names are missing: %s", word, missing, said)
		}
	}
}

// checkNotesOfSummary: a recording's account holds them, too.
func checkNotesOfSummary(t *testing.T, goprof string, c container) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sum.json")
	r := recordShares(t, append(slices.Clone(weak), goprof, "record", "--pid", strconv.Itoa(c.pid), "-q", "-o", "-",
		"--summary", file)...)
	var sum profile.Summary
	if b, err := os.ReadFile(file); r.code != 0 || err != nil || json.Unmarshal(b, &sum) != nil {
		t.Fatalf("%v %+v", err, r)
	}
	if len(sum.Notes) == 0 || !strings.HasPrefix(sum.Notes[0].Name, "library-") || sum.Notes[0].Remedy == "" {
		t.Errorf("%+v", sum.Notes)
	}
}

// checkReplaced: the other commands know the JVM, too.
func checkReplaced(t *testing.T, goprof string, c container) {
	t.Helper()
	if list := runIt(t, goprof, "list"); !strings.Contains(list.out, "\n"+strconv.Itoa(c.pid)+" ") ||
		strings.Contains(list.out, "cannot be recorded") && strings.Contains(list.out, strconv.Itoa(c.pid)+" cannot") {
		t.Errorf("list: %s", list.out)
	}
	if doctor := runIt(t, goprof, "doctor", "--pid", strconv.Itoa(c.pid)); doctor.code != 0 ||
		strings.Contains(doctor.out, "warn  symbols") {
		t.Errorf("doctor: %s%s", doctor.out, doctor.err)
	}
	if r := recordShares(t, goprof, "record", "--pid", strconv.Itoa(c.pid), "-o", "-"); r.code != 0 ||
		!strings.Contains(r.out, "truth.Shares.") {
		t.Errorf("record: %+v", r)
	}
}

// mapped is the path under which a process has mapped a library, read in another way than goprof does.
func mapped(t *testing.T, pid int, name string) string {
	t.Helper()
	maps, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		if i := strings.IndexByte(line, '/'); i > 0 && filepath.Base(strings.TrimSpace(line[i:])) == name {
			return strings.TrimSpace(line[i:])
		}
	}
	t.Fatalf("%d has no %s", pid, name)
	return ""
}
