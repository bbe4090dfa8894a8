//go:build linux && (amd64 || arm64)

package osthread

import "unsafe"

// handler returns a signal handler, in assembly. The kernel calls it on an OS thread of Go's, between any two
// instructions.
//
//lint:ignore U1000 the assembly has its address
func handler()

// handlerPC is the address of handler.
func handlerPC() uintptr

// handle is the part of handler that is written in Go.
//
//lint:ignore U1000 the assembly calls it
//go:nosplit
func handle(info unsafe.Pointer) { onSignal(info) }
