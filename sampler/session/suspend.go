//go:build linux

package session

import (
	"golang.org/x/sys/unix"

	"goprof/sampler/ptrace"
)

// StopAfterSuspend has Ctrl-Z stop goprof only once it holds no thread, until the function that it returns is called.
func StopAfterSuspend() (end func()) { return ptrace.StopAfterSuspend() }

// StopAround is StopAfterSuspend for a program that has something to do before it stops, and after it: around is called
// with the signal and with what stops this process, and returns when it goes on.
func StopAround(around func(sig unix.Signal, stop func())) (end func()) {
	return ptrace.StopAround(around)
}

// StartWatchdog starts this program anew with these arguments, which must call Watch: a process that has goprof let go
// of all threads when it was stopped by force (SIGSTOP).
func StartWatchdog(args ...string) (end func()) { return ptrace.StartWatchdog(args...) }

// Watch is that process.
func Watch() { ptrace.Watch() }
