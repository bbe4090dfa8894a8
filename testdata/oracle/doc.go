//go:build linux

// Package oracle holds what goprof says of real JVMs against what another source says of them: the program's own notes
// of its stack, the instructions that a thread executes, the JVM's and gdb's words, known shares of CPU time, files and
// containers as they are.
//
// All of it goes through what package session exports, or through the command itself. It stands in testdata, which go's
// ./... leaves out, because it needs JVMs and many minutes; make test runs it, and make prove its long form.
package oracle
