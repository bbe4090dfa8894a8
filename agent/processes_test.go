//go:build linux

package agent

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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

// TestProcessListUpdate: without the list, a new process is found and its threads are not. A process that has ended is
// left out.
func TestProcessListUpdate(t *testing.T) {
	thread, child := threadAndProcess(t)
	for range 20 { // the kernel may begin with low numbers again, or others begin many threads
		if d := thread - child.Process.Pid; max(d, -d) < mostNew {
			break
		}
		thread, child = threadAndProcess(t)
	}
	pid := child.Process.Pid
	low, high := min(thread, pid), max(thread, pid)
	l := &processList{pids: []int{os.Getppid(), os.Getpid()}, before: low - 1, newest: high}
	if !l.update(l.before) || !slices.Contains(l.pids, pid) || !slices.Contains(l.pids, os.Getppid()) {
		t.Errorf("a process is missing: %v", l.pids)
	}
	if thread != os.Getpid() && slices.Contains(l.pids, thread) {
		t.Error("a thread is taken for a process")
	}
	child.Process.Kill()
	child.Wait()
	l.before, l.newest = high, high
	if !l.update(l.before) || slices.Contains(l.pids, pid) {
		t.Error("a process that has ended is in the list")
	}
	own := []int{os.Getpid()}
	for _, l := range []processList{{before: 1, newest: 2}, {pids: []int{own[0] + 1}, before: 1, newest: 2},
		{pids: own, before: 2, newest: 1}, {pids: own, newest: mostNew + 1}} {
		if l.update(l.before) {
			t.Errorf("%+v was brought up to date without a list", l)
		}
	}
}

// threadAndProcess begins a thread and a process, one after the other. Both end with the test.
func threadAndProcess(t *testing.T) (thread int, child *exec.Cmd) {
	t.Helper()
	threads := make(chan int)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its goroutine
		threads <- unix.Gettid()
		<-threads
	}()
	thread = <-threads
	child = exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		close(threads)
		child.Process.Kill()
		child.Wait()
	})
	return thread, child
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
