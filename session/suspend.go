//go:build linux

package session

import (
	"golang.org/x/sys/unix"

	"goprof/sampler/ptrace"
)

// StopAfterSuspend delays the stop by Ctrl-Z until goprof holds no thread. It has effect until the returned function is
// called.
func StopAfterSuspend() (end func()) { return ptrace.StopAfterSuspend() }

// StopAround is StopAfterSuspend for a program that must do something before and after its stop. around gets the
// signal, and a function stop that stops this process and returns when the process continues.
func StopAround(around func(sig unix.Signal, stop func())) (end func()) {
	return ptrace.StopAround(around)
}

// LetSysmonRest makes Go's runtime wake up sampling threads less often. Call it when nothing more will be started.
func LetSysmonRest() { ptrace.LetSysmonRest() }

// StartWatchdog starts this program once more with these arguments, which must call Watch. The new process makes goprof
// release all threads if goprof was stopped by force (SIGSTOP).
func StartWatchdog(args ...string) (end func()) { return ptrace.StartWatchdog(args...) }

// Watch is the main function of the watchdog process.
func Watch() { ptrace.Watch() }
