//go:build linux

// Package recorder records JVMs into files, as "goprof record" does. The caller sets what is recorded (Options) and
// which JVMs (All), or records one of them (New). It gets the files, and one error with cause and remedy. The recorder
// reserves the files first. Then it attaches to the JVM and chooses an engine for each part. While it records, it shows
// its progress, and at a signal it writes what it has. With Loop it writes one file after the other. At the end it
// writes the account. A recording without samples leaves no file of stacks, and an error says why.
//
// The recorder does not check the options, and does not set up the process: the caller handles rights, priority and
// signals.
package recorder
