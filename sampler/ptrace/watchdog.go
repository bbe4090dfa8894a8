//go:build linux

package ptrace

import (
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/process/procfs"
)

// SIGSTOP cannot be caught. It may stop goprof while goprof holds a thread of the target, or has told a thread to stop.
// That thread would then stay stopped. So a separate process, the watchdog, watches goprof. The watchdog makes a
// stopped goprof go on. Then goprof releases all threads, and stops again. Some milliseconds later only goprof is
// stopped.
//
// One case remains: a stop of both at once (a frozen container, pkill -STOP goprof) can leave a thread stopped until
// goprof goes on or is killed.

const (
	// watchEvery is how often the watchdog checks whether goprof is stopped.
	watchEvery = 40 * time.Millisecond
	// watchAgain is the time until the watchdog checks once more before it acts. goprof sends stopsNow before a proper
	// stop.
	watchAgain = 2 * time.Millisecond
	// dogSlack is how much longer the watchdog's other OS threads may sleep. Of these only Go's sysmon is ever awake.
	dogSlack = time.Second
)

// The messages of goprof to its watchdog.
const (
	stopsNow    = 's' // goprof holds no thread and is about to stop: leave goprof alone
	goesOn      = 'c'
	mayHold     = 'h' // from now on goprof may hold threads
	holdsNobody = 'n' // from now on goprof holds no thread: the watchdog need not check
)

// tellWatchdog sends the watchdog a message. nil: there is no watchdog.
var tellWatchdog atomic.Pointer[func(byte)]

// tellDog sends the watchdog a message, if there is a watchdog.
func tellDog(what byte) {
	if f := tellWatchdog.Load(); f != nil {
		(*f)(what)
	}
}

// StartWatchdog starts this program again with these arguments. With them the program must call Watch. The new process
// watches goprof until the function end is called. If no process can be started, there is no watchdog.
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
	cmd.Args = append([]string{os.Args[0]}, args...) // so that ps shows which program it is
	cmd.ExtraFiles = []*os.File{toDog, fromDog}      // descriptors 3 and 4
	// Without asyncpreemptoff sysmon would end each sleep of the watchdog by a signal (sysmon.go).
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-Z and Ctrl-C do not reach the watchdog
	err = startWithSlack(cmd, dogSlack)
	toDog.Close()
	fromDog.Close()
	if err != nil {
		toUs.Close()
		fromUs.Close()
		return func() {}
	}
	send := func(what byte) { fromUs.Write([]byte{what}) }
	tellWatchdog.Store(&send)
	tellHolders()
	go stopWhenFound(toUs)
	return func() {
		tellWatchdog.Store(nil)
		fromUs.Close() // the watchdog ends when it reads this end of file
		go cmd.Wait()
		toUs.Close()
	}
}

// stopWhenFound stops this process properly each time that the watchdog has found it stopped.
func stopWhenFound(dog *os.File) {
	var b [1]byte
	for {
		if n, err := dog.Read(b[:]); n == 0 || err != nil {
			return
		}
		again := make(chan os.Signal, 2)
		signal.Notify(again, unix.SIGCONT)
		Suspend(func() {
			// One SIGCONT may be the watchdog's own. A second one is another process's, which wants goprof to go on.
			if signal.Stop(again); len(again) < 2 {
				stopSelf(unix.SIGSTOP)
			}
		})
	}
}

// startWithSlack starts a program whose OS threads all have that timer slack: an OS thread inherits it from the one
// that made it (kernel/fork.c, copy_process).
func startWithSlack(cmd *exec.Cmd, slack time.Duration) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, _, e := syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_GET_TIMERSLACK, 0, 0)
	if e == 0 && unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0) == nil {
		defer unix.Prctl(unix.PR_SET_TIMERSLACK, before, 0, 0, 0)
	}
	return cmd.Start()
}

type dog struct {
	parent    int
	stat      int  // descriptor of the parent's stat
	from, to  int  // descriptors of the pipes
	proper    bool // goprof has stopped properly
	watches   bool // goprof may hold threads
	ended     bool // goprof has ended
	buf       [512]byte
	untilThen unix.Timespec
}

// Watch watches over the process that started this one, until it ends. Go's scheduler does not know of its system
// calls. A call that Go knows of wakes sysmon, which then checks some fifty times, 20 us apart, whether the call lasts
// long (runtime/proc.go, sysmon). A timer of Go's wakes several OS threads. Together that took four fifths of the
// watchdog's CPU time.
func Watch() {
	runtime.LockOSThread()
	d := dog{parent: unix.Getppid(), from: 3, to: 4}
	main := strconv.Itoa(d.parent)
	var err error
	d.stat, err = unix.Open("/proc/"+main+"/task/"+main+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil || unix.SetNonblock(d.from, true) != nil {
		return
	}
	unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(time.Millisecond), 0, 0, 0)
	for !d.ended {
		if !d.watches {
			d.await()
			d.listen()
			continue
		}
		if d.sleep(watchEvery); !d.hasStopped() {
			continue
		}
		if d.sleep(watchAgain); !d.hasStopped() || unix.Getppid() != d.parent {
			continue
		}
		if _, err := unix.Write(d.to, []byte{'!'}); err != nil {
			return
		}
		unix.Kill(d.parent, unix.SIGCONT)
	}
}

func (d *dog) sleep(long time.Duration) {
	d.untilThen = unix.NsecToTimespec(int64(long))
	syscall.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&d.untilThen)), 0, 0)
}

// await sleeps until goprof has sent something, or has ended.
func (d *dog) await() {
	fds := [1]unix.PollFd{{Fd: int32(d.from), Events: unix.POLLIN}}
	syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds)), 1, 0, 0, 0, 0)
}

// hasStopped reports whether goprof was stopped without having said so before.
func (d *dog) hasStopped() bool {
	d.listen()
	return !d.ended && !d.proper && d.isStopped()
}

// listen reads all that goprof has sent so far, and does not wait for more. It sets d.ended if goprof has closed its
// end of the pipe.
func (d *dog) listen() {
	for {
		n, _, e := syscall.RawSyscall(unix.SYS_READ, uintptr(d.from), uintptr(unsafe.Pointer(&d.buf)), uintptr(len(d.buf)))
		switch {
		case e == unix.EINTR:
		case e == unix.EAGAIN:
			return
		case e != 0 || n == 0:
			d.ended = true
			return
		default:
			d.hear(d.buf[:n])
		}
	}
}

func (d *dog) hear(words []byte) {
	for _, w := range words {
		switch w {
		case stopsNow, goesOn:
			d.proper = w == stopsNow
		case mayHold, holdsNobody:
			d.watches = w == mayHold
		}
	}
}

// isStopped reports whether a signal has stopped goprof: the state of its main thread is T then, as of all others. If a
// tracer has stopped it, the state is t, and the watchdog does nothing.
func (d *dog) isStopped() bool {
	n, _, e := syscall.RawSyscall6(unix.SYS_PREAD64, uintptr(d.stat), uintptr(unsafe.Pointer(&d.buf)), uintptr(len(d.buf)),
		0, 0, 0)
	return e == 0 && procfs.State(d.buf[:n]) == 'T'
}
