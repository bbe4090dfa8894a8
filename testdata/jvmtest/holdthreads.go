//go:build linux

package jvmtest

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// HoldThreads keeps the threads of a process from running whose name holds a text, until the function that it
// returns is called. It returns how many there are.
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
		stopped <- holdAll(tids)
		<-end
		for _, tid := range tids {
			unix.PtraceDetach(tid)
		}
	}()
	err := <-stopped
	if err != nil {
		t.Fatal(err)
	}
	return len(tids), func() { close(end); <-ended }
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
