//go:build linux

// Package topscreen watches one JVM: its threads, the running methods, its pools, and goprof's own cost. A Watch makes
// one reading (Once), or shows readings on the terminal and handles keys (Show): look at a thread, write a dump, record
// into a file. Package output/top makes the content of the screen, and package terminal draws it.
//
// A thread at rest is not stopped. What cannot be read is shown as not known. The caller handles the rights, priority
// and signals of the process.
package topscreen
