// Package jfr writes and reads JDK Flight Recorder files.
//
// Writer takes samples with their times and writes chunks (format 2.1: JDK 9 and later, JMC, IntelliJ, async-profiler's
// converter). A chunk is built in memory. It is written at once, including its header, when it is a minute long or
// large. So a file is complete at every moment, and may be a pipe. A crash loses the last minute. Every chunk holds
// everything that its events refer to. Memory is bounded by Options.ChunkBytes, whatever a recording's length.
//
// Reader reads such files: goprof's, the JDK's and async-profiler's. It uses the metadata in each chunk. A file is
// foreign input: every count, length and reference is checked against the file's bytes, and BadRecording says at which
// byte a file is wrong. All chunks before that byte have been read.
//
// The package knows nothing of JVMs or of how samples are taken, and builds on any operating system.
package jfr
