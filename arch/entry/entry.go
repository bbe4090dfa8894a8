//go:build linux && (amd64 || arm64)

// Package entry holds the first instructions of the program, if the linker is called with -E goprof/arch/entry.start,
// as scripts/build.sh does. Go's runtime reserves address space before it runs any Go code. If "ulimit -v" allows too
// little, the runtime dies with a message of its own. So this package reads the limit first, in assembly and without a
// Go stack. With less than 1.5 GB goprof says what is wrong and ends. Otherwise Go's runtime begins as always.
//
// Measured with Go 1.26: below 800 MB the runtime never starts. Up to 1.3 GB it sometimes starts, depending on the
// addresses that the kernel has chosen. From 1.4 GB on it always starts.
package entry

// start is the first instruction of the program. The kernel jumps to it.
//
//lint:ignore U1000 the linker is told its name
func start()
