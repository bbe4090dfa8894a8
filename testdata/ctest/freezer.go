//go:build linux

package ctest

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Freezer is a cgroup whose processes can be frozen, as docker pause does it.
type Freezer struct {
	dir, file      string
	frozen, thawed string // what to write there
}

// Freezers are those of both versions that this machine has.
func Freezers(t testing.TB) map[string]Freezer {
	t.Helper()
	made := map[string]Freezer{}
	add := func(version, parent string, f Freezer) {
		f.dir = filepath.Join(parent, "goprof-test-"+strconv.Itoa(os.Getpid()))
		if _, err := os.Stat(filepath.Join(parent, "cgroup.procs")); err != nil || os.Mkdir(f.dir, 0o755) != nil {
			return
		}
		t.Cleanup(func() { os.Remove(f.dir) })
		if _, err := os.Stat(filepath.Join(f.dir, f.file)); err == nil {
			made[version] = f
		}
	}
	add("1", "/sys/fs/cgroup/freezer", Freezer{file: "freezer.state", frozen: "FROZEN", thawed: "THAWED"})
	for _, parent := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		add("2", parent, Freezer{file: "cgroup.freeze", frozen: "1", thawed: "0"})
	}
	if len(made) == 0 {
		t.Skip("this machine lets nobody make a cgroup that can be frozen")
	}
	return made
}

// Freeze stops all of its processes.
func (f *Freezer) Freeze(t testing.TB) { t.Helper(); f.set(t, f.frozen) }

// Thaw lets them go on.
func (f *Freezer) Thaw(t testing.TB) { t.Helper(); f.set(t, f.thawed) }

func (f *Freezer) set(t testing.TB, state string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, f.file), []byte(state), 0); err != nil {
		t.Fatal(err)
	}
}

// Hold puts a process into the cgroup until the test ends.
func (f *Freezer) Hold(t testing.TB, p *Program) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, "cgroup.procs"), []byte(strconv.Itoa(p.PID)), 0); err != nil {
		t.Skipf("this machine lets nobody into a cgroup of its own: %v", err)
	}
	t.Cleanup(func() { // before the directory is removed, and the program ended
		os.WriteFile(filepath.Join(f.dir, f.file), []byte(f.thawed), 0)
		p.Process.Kill()
		p.Wait()
	})
}

// Borrow puts a process into the cgroup, thawed, until the test ends.
func (f *Freezer) Borrow(t testing.TB, pid int) {
	t.Helper()
	move := func(dir string) error {
		return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
	}
	if err := move(f.dir); err != nil {
		t.Skipf("this machine lets nobody into a cgroup of its own: %v", err)
	}
	t.Cleanup(func() {
		f.Thaw(t)
		move(filepath.Dir(f.dir))
	})
}

// Dir is the cgroup's folder.
func (f *Freezer) Dir() string { return f.dir }

// AwaitStandstill waits until a thread is charged nothing any more.
func AwaitStandstill(t testing.TB, p *Program) {
	t.Helper()
	last := int64(-1)
	Eventually(t, "frozen", func() bool {
		time.Sleep(20 * time.Millisecond)
		now := Ran(t, p.PID, p.PID)
		stood := now == last
		last = now
		return stood
	})
}
