//go:build linux

package agent

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// TestProcessList: a process that has come is in the list at once, and one that has ended is not. The list is not read
// while neither happens.
func TestProcessList(t *testing.T) {
	l := openProcessList()
	if l.threads() == nil {
		t.Skip("/proc/loadavg is not this kernel's own")
	}
	read := 0
	list := func() (pids []int) {
		read++
		return (&ThisHost{}).Host.PIDs()
	}
	has := func(pid int) bool { return slices.Contains(l.read(time.Now(), list), pid) }
	if !has(os.Getpid()) {
		t.Fatal("we are not in it")
	}
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if !has(child.Process.Pid) {
		t.Error("a new process is not in it")
	}
	child.Process.Kill()
	child.Wait()
	if has(child.Process.Pid) {
		t.Error("a process that has ended is in it")
	}
	before := read
	for range 50 { // others may come and go meanwhile
		l.read(time.Now(), list)
	}
	if read-before > 40 {
		t.Errorf("the list was read %d times in a row", read-before)
	}
	before = read
	l.read(time.Now().Add(listAnew), list)
	if read == before {
		t.Error("the list was not read anew after its time")
	}
}

// TestProcessListUnread: where the list could not be read, the next reading does not count as unchanged.
func TestProcessListUnread(t *testing.T) {
	l := openProcessList()
	if l.read(time.Now(), func() []int { return nil }) != nil {
		t.Error("there is a list")
	}
	if got := l.read(time.Now(), func() []int { return []int{7} }); !slices.Equal(got, []int{7}) {
		t.Errorf("%v", got)
	}
}
