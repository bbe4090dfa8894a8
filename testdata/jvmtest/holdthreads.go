//go:build linux

package jvmtest

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// HoldThreads keeps the threads of a process from running whose name holds a text, until the function that it
// returns is called. It returns how many there are. All of them sleep in the kernel then: one that is held on its way
// through the JVM may have a lock, or keep a safepoint waiting, and the whole JVM would wait for it.
func HoldThreads(t testing.TB, pid int, called string) (held int, release func()) {
	t.Helper()
	var tids []int
	tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*")
	for _, task := range tasks {
		name, _ := os.ReadFile(task + "/comm")
		if tid, err := strconv.Atoi(filepath.Base(task)); err == nil && strings.Contains(string(name), called) {
			tids = append(tids, tid)
		}
	}
	stopped, end, ended := make(chan error), make(chan bool), make(chan bool)
	go func() {
		runtime.LockOSThread() // only the OS thread that stops a thread can let it go; it ends with this goroutine
		defer close(ended)
		stopped <- holdAsleep(tids)
		<-end
		letGo(tids)
	}()
	err := <-stopped
	if err != nil {
		t.Fatal(err)
	}
	return len(tids), func() { close(end); <-ended }
}

// holdAsleep tries again until all threads have slept for a while, and sleep when they are held. One that has just gone
// to sleep may wait for a lock while it holds another.
func holdAsleep(tids []int) error {
	for range 100 {
		before := switches(tids)
		time.Sleep(300 * time.Millisecond)
		if before == "" || switches(tids) != before {
			continue
		}
		if err := holdAll(tids); err != nil || !slices.ContainsFunc(tids, awake) {
			return err
		}
		letGo(tids)
	}
	return errors.New("the threads do not come to rest")
}

// switches are how often the kernel has switched from each thread, or nothing if one does not sleep.
func switches(tids []int) string {
	var all strings.Builder
	for _, tid := range tids {
		status, _ := os.ReadFile("/proc/" + strconv.Itoa(tid) + "/status")
		_, state, _ := bytes.Cut(status, []byte("\nState:\t"))
		_, counts, _ := bytes.Cut(state, []byte("\nvoluntary_ctxt_switches:"))
		if !bytes.HasPrefix(state, []byte("S")) {
			return ""
		}
		all.Write(counts)
	}
	return all.String()
}

// awake reports whether a thread that is held was not in a futex (proc_pid_syscall(5)).
func awake(tid int) bool {
	call, err := os.ReadFile("/proc/" + strconv.Itoa(tid) + "/syscall")
	return err != nil || !bytes.HasPrefix(call, []byte(strconv.Itoa(unix.SYS_FUTEX)+" "))
}

func letGo(tids []int) {
	for _, tid := range tids {
		unix.PtraceDetach(tid)
	}
}

func holdAll(tids []int) error {
	for _, tid := range tids {
		if err := unix.PtraceSeize(tid); err != nil {
			return err
		}
		if err := unix.PtraceInterrupt(tid); err != nil {
			return err
		}
		var status unix.WaitStatus
		if _, err := unix.Wait4(tid, &status, unix.WALL, nil); err != nil {
			return err
		}
	}
	return nil
}
