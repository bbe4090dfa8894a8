//go:build linux && (amd64 || arm64)

package osthread

import "unsafe"

// handler is a signal handler, in assembly. The kernel calls it on an OS thread of Go's, between any two instructions.
//
//lint:ignore U1000 the assembly has its address
func handler()

func handlerPC() uintptr

// handle is where handler goes on.
//
//lint:ignore U1000 the assembly calls it
//go:nosplit
func handle(info unsafe.Pointer) { onSignal(info) }
