//go:build linux

// Package recorder records JVMs into files, as "goprof record" does. Its user says what is recorded (Options) and
// which JVMs (All), or records one of them (New). It gets the files, and one error that says what went wrong and
// what mends it. The recorder reserves the files first, then attaches to the JVM and chooses an engine for each
// part. While it records, it shows how far it is, and writes what there is at a signal; in a loop it begins one file
// after the other. At the end it writes the account. A recording without samples leaves no stacks, and says why
// there are none.
//
// The recorder does not check what was asked for, and does not set up the process: rights, priority and signals are
// its user's.
package recorder
