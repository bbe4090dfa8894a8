//go:build linux

package session

import "goprof/sampler"

// StopAfterSuspend has Ctrl-Z stop goprof only once it holds no thread, until the function that it returns is called.
func StopAfterSuspend() (end func()) { return sampler.StopAfterSuspend() }
