//go:build linux

package osthread

import "unsafe"

// onSignal is what a signal handler of goprof's calls.
var onSignal func(info unsafe.Pointer)

// Handler returns the address of a signal handler for sigaction(2). The handler calls f with the siginfo_t. The address
// is 0 on a CPU that goprof does not know, and with the race detector. A program can have only one f.
//
// f runs on an OS thread that Go knows, between any two instructions of Go's, even while Go's scheduler keeps this OS
// thread waiting. The rules for a Thread's function hold for f, too.
func Handler(f func(info unsafe.Pointer)) uintptr {
	if raceEnabled { // the race detector adds calls that need a goroutine
		return 0
	}
	onSignal = f
	return handlerPC()
}
