//go:build linux

package ring

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"goprof/sampler/cpuset"
)

// TestRingsOfManyCPUs: whatever the number of CPUs, the rings of a recording lock bounded memory, and a record with the
// largest copy of a stack fits into half a ring. On 512 CPUs they were 384 MB: 256 KB for each CPU, three times.
// The kernel takes rings of 2^n pages only (kernel/events/core.c, perf_mmap), whatever the size of a page is, and each
// has a page besides.
func TestRingsOfManyCPUs(t *testing.T) {
	for cpus := 1; cpus <= 1024; cpus++ {
		cpuTime, group, events := Share(cpus, Most), Share(cpus, 2*Least), Share(cpus, MostOfEvents)
		for what, size := range map[string]int{"CPU time": cpuTime, "group": group, "events": events} {
			if size*cpus > ringsTotal || size < Floor || size&(size-1) != 0 {
				t.Fatalf("%s on %d CPUs: rings of %d KB, %d MB together", what, cpus, size>>10, size*cpus>>20)
			}
			if stack := StackFor(size); stack+2048 > size/2 && stack < MostStack || stack < 28<<10 {
				t.Fatalf("%s on %d CPUs: %d bytes of stack in a ring of %d", what, cpus, stack, size)
			}
		}
		for page, most := range map[int]int{4 << 10: 192 + 12, 16 << 10: 192 + 48, 64 << 10: 192 + 192} {
			if all := (2*(cpuTime+page) + events + page) * cpus; all > most<<20 || cpuTime%page != 0 || events%page != 0 {
				t.Fatalf("pages of %d KB: a recording with events on %d CPUs locks %d MB, in rings of %d and %d KB",
					page>>10, cpus, all>>20, cpuTime>>10, events>>10)
			}
		}
		if cpus <= 256 && StackFor(cpuTime) != MostStack {
			t.Fatalf("%d CPUs: %d bytes of each stack", cpus, StackFor(cpuTime))
		}
	}
	for _, cpus := range []int{2, 16, 64, 128, 256, 512, 1024} {
		size := Share(cpus, Most)
		t.Logf("%d CPUs: a ring of %d KB for each, %d MB, stacks to %d KB", cpus, size>>10, size*cpus>>20,
			(StackFor(size)+1023)>>10)
	}
}

// TestRingRoom: all rings of a goprof together have a bound, and give back what they had.
func TestRingRoom(t *testing.T) {
	fd, err := unix.MemfdCreate("ring", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	const size = 64 << 10
	if err := unix.Ftruncate(fd, size); err != nil {
		t.Fatal(err)
	}
	var room ringRoom
	most := MostLocked()
	if most < 256<<20 {
		t.Fatalf("%d MB", most>>20)
	}
	room.locked.Store(most - size)
	mem, err := room.mmap(fd, size)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := room.mmap(fd, size); !errors.Is(err, ErrFull) {
		t.Errorf("%v", err)
	}
	room.munmap(mem)
	if _, err := room.mmap(-1, size); err == nil || errors.Is(err, ErrFull) {
		t.Errorf("%v", err)
	}
	if left := room.locked.Load(); left != most-size {
		t.Errorf("%d bytes stay locked", left-most+size)
	}
}

// TestTryRings: a ring that is tried is gone afterwards.
func TestTryRings(t *testing.T) {
	if _, err := Try(0); err != nil {
		t.Skip(err)
	}
	before := lockedRings.locked.Load()
	one, wanted, all, err := TryRings()
	if err != nil || one > wanted || all < int64(one) || lockedRings.locked.Load() != before {
		t.Errorf("%d of %d bytes, %d, %v", one, wanted, all, err)
	}
}

// TestRingsOfAUser: the rings of a user without rights share what may be locked. The first ones were as large as could
// be, and nothing was left for the last: on two CPUs with 64 KB of RLIMIT_MEMLOCK there was no engine perf.
func TestRingsOfAUser(t *testing.T) {
	if os.Geteuid() == 0 {
		runAsUser(t)
		return
	}
	if _, err := Try(0); err != nil {
		t.Skip(err)
	}
	one, wanted, all, err := TryRings()
	if err != nil || one >= wanted || one < Least || all != 2*int64(len(cpuset.Online()))*int64(one+os.Getpagesize()) {
		t.Errorf("%d of %d bytes for each CPU, %d: %v", one, wanted, all, err)
	}
}

// runAsUser runs this test as a user of its own, who has locked nothing.
func runAsUser(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "goprof-rings")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "sampler.test")
	b, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(program, b, 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	uid := strconv.Itoa(1<<20 + os.Getpid())
	cmd := exec.Command("setpriv", "--reuid", uid, "--regid", uid, "--clear-groups", "prlimit", "--memlock=65536:65536",
		program, "-test.run", "^TestRingsOfAUser$", "-test.v")
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip(err)
	}
	if err != nil {
		t.Error(err)
	}
}
