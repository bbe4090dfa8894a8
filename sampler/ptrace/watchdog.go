//go:build linux

package ptrace

import (
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
)

// SIGSTOP cannot be caught. It may stop goprof while goprof holds a thread, or while a thread that goprof has told to
// stop is about to. Then that thread would stay standing. So a process of its own watches goprof. The watchdog makes a
// stopped goprof go on. Then goprof lets all threads go, and stops again. In the end, some milliseconds later, goprof
// alone is stopped.
//
// One case remains: a stop of both at once (a frozen container, pkill -STOP goprof) can leave a thread standing until
// goprof goes on or is killed.

// watchEvery is how often the watchdog looks whether goprof is stopped.
const watchEvery = 20 * time.Millisecond

// What goprof tells its watchdog.
const (
	stopsNow = 's' // goprof holds nobody and is about to stop: leave goprof alone
	goesOn   = 'c'
)

// tellWatchdog is set while there is a watchdog.
var tellWatchdog atomic.Pointer[func(byte)]

// tellDog sends the watchdog a word, if there is one.
func tellDog(what byte) {
	if f := tellWatchdog.Load(); f != nil {
		(*f)(what)
	}
}

// StartWatchdog starts this program anew with these arguments. With them the program must call Watch. The new process
// watches over us until the function end is called. Where no process can be started, there is no watchdog.
func StartWatchdog(args ...string) (end func()) {
	toUs, fromDog, err := os.Pipe()
	if err != nil {
		return func() {}
	}
	toDog, fromUs, err := os.Pipe()
	if err != nil {
		toUs.Close()
		fromDog.Close()
		return func() {}
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = append([]string{os.Args[0]}, args...) // ps shows whose it is
	cmd.ExtraFiles = []*os.File{toDog, fromDog}      // 3 and 4
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-Z and Ctrl-C do not reach the watchdog
	err = cmd.Start()
	toDog.Close()
	fromDog.Close()
	if err != nil {
		toUs.Close()
		fromUs.Close()
		return func() {}
	}
	send := func(what byte) { fromUs.Write([]byte{what}) }
	tellWatchdog.Store(&send)
	go stopWhenFound(toUs)
	return func() {
		tellWatchdog.Store(nil)
		fromUs.Close() // the watchdog ends when it reads this end of file
		go cmd.Wait()
		toUs.Close()
	}
}

// stopWhenFound stops this process properly whenever the watchdog has found it stopped.
func stopWhenFound(dog *os.File) {
	var b [1]byte
	for {
		if n, err := dog.Read(b[:]); n == 0 || err != nil {
			return
		}
		again := make(chan os.Signal, 2)
		signal.Notify(again, unix.SIGCONT)
		Suspend(func() {
			// One SIGCONT may be the watchdog's own. With two, somebody else has sent the other one, and wants us to go
			// on by now.
			if signal.Stop(again); len(again) < 2 {
				stopSelf(unix.SIGSTOP)
			}
		})
	}
}

// Watch watches over the process that started this one, until it ends.
func Watch() {
	in, out := os.NewFile(3, "from goprof"), os.NewFile(4, "to goprof")
	if in == nil || out == nil {
		return
	}
	parent := unix.Getppid()
	stat, err := unix.Open("/proc/"+strconv.Itoa(parent)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	var proper atomic.Bool // goprof has stopped as it should
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var b [1]byte
		for {
			if n, err := in.Read(b[:]); n == 0 || err != nil {
				return
			}
			proper.Store(b[0] == stopsNow)
		}
	}()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		if proper.Load() || !isStopped(stat) {
			continue
		}
		time.Sleep(watchEvery / 10) // goprof says so before it stops, but another OS thread of ours reads it
		if proper.Load() || unix.Getppid() != parent || !isStopped(stat) {
			continue
		}
		if _, err := out.Write([]byte{'!'}); err != nil {
			return
		}
		unix.Kill(parent, unix.SIGCONT)
	}
}

// isStopped reads /proc/PID/stat. T: a signal has stopped the process. t: a tracer has, and we leave it alone.
//
// Go's scheduler is not told of the call. A call that it is told of wakes up Go's sysmon where nothing else runs, and
// sysmon then looks some fifty times, 20 us apart, whether a call lasts long (runtime/proc.go, sysmon): that took a
// third of the watchdog's CPU time.
func isStopped(stat int) bool {
	var b [512]byte
	n, _, e := syscall.RawSyscall6(unix.SYS_PREAD64, uintptr(stat), uintptr(unsafe.Pointer(&b)), uintptr(len(b)), 0, 0, 0)
	return e == 0 && procfs.State(b[:n]) == 'T'
}
