//go:build linux && (amd64 || arm64)

// Package entry is where the program begins if the linker is told so (-E goprof/arch/entry.start, as the Makefile
// does). Go's runtime reserves address space before it runs any Go code, and dies with a message of its own where
// "ulimit -v" allows too little. So the limit is asked for before that, in assembly, without a stack of Go's:
// with less than 1.5 GB goprof says what is wrong and ends. Else the runtime begins as ever.
//
// Measured with Go 1.26: below 800 MB the runtime never starts; up to 1.3 GB it starts or not, by where the kernel has
// put things; from 1.4 GB on it always did.
package entry

// start is the first instruction of the program. The kernel jumps to it.
//
//lint:ignore U1000 the linker is told its name
func start()
