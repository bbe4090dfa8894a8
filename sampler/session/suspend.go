//go:build linux

package session

import "goprof/sampler/ptrace"

// StopAfterSuspend has Ctrl-Z stop goprof only once it holds no thread, until the function that it returns is called.
func StopAfterSuspend() (end func()) { return ptrace.StopAfterSuspend() }

// StartWatchdog starts this program anew with these arguments, which must call Watch: a process that has goprof let go
// of all threads when it was stopped by force (SIGSTOP).
func StartWatchdog(args ...string) (end func()) { return ptrace.StartWatchdog(args...) }

// Watch is that process.
func Watch() { ptrace.Watch() }
