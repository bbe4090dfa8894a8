//go:build linux && (amd64 || arm64)

package osthread

import "sync/atomic"

// clone starts the OS thread, which runs the loop that follows it in the same assembly. It returns the thread's
// number, or an errno below 0.
//
//go:noescape
func clone(c *control, flags uintptr, lives *atomic.Uint32) int

// cloneOnto starts an OS thread that calls begin with c, on the stack below top. It returns the thread's number, or an
// errno below 0.
//
//go:noescape
func cloneOnto(c *threadControl, flags uintptr, lives *atomic.Uint32, top uintptr) int
