//go:build linux

package session

import (
	"golang.org/x/sys/unix"

	"goprof/sampler/ptrace"
)

// StopAfterSuspend makes Ctrl-Z stop goprof only when it holds no thread, until the function that it returns is called.
func StopAfterSuspend() (end func()) { return ptrace.StopAfterSuspend() }

// StopAround is StopAfterSuspend for a program that has something to do before it stops, and after it: around is called
// with the signal and with what stops this process, and returns when it goes on.
func StopAround(around func(sig unix.Signal, stop func())) (end func()) {
	return ptrace.StopAround(around)
}

// LetSysmonRest lets Go's runtime wake sampling threads up less often. Call it when nothing more will be started.
func LetSysmonRest() { ptrace.LetSysmonRest() }

// StartWatchdog starts this program once more with these arguments, which must call Watch. That process makes goprof
// let go of all threads when goprof was stopped by force (SIGSTOP).
func StartWatchdog(args ...string) (end func()) { return ptrace.StartWatchdog(args...) }

// Watch is what the watchdog process runs.
func Watch() { ptrace.Watch() }
