//go:build linux

// Package topscreen watches one JVM all the time: its threads, the methods that run, its pools, what goprof itself
// costs. A Watch gives one reading (Once), or shows readings on the terminal and does what the user asks for by keys
// (Show): look at a thread, write a dump, record into a file. Package output/top makes the content of the screen,
// and package terminal draws it.
//
// A thread at rest is not stopped. What cannot be read is not known, and is shown as that. Rights, priority and
// signals of the process are the caller's.
package topscreen
