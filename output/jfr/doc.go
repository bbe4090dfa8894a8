// Package jfr writes and reads JDK Flight Recorder files.
//
// Writer takes samples with their times and writes chunks (format 2.1: JDK 9 and later, JMC, IntelliJ, async-profiler's
// converter). A chunk is built in memory and written at once, header included, when it is a minute long or large. So a
// file is complete at every moment, and may be a pipe. A crash loses the last minute. Every chunk holds everything that
// its events refer to. Memory is bounded by Options.ChunkBytes, whatever a recording's length.
//
// Reader takes such files, ours, those of the JDK's own recorder and those of async-profiler, by the metadata in each
// chunk. A file is foreign input: every count, length and reference is checked against the bytes that are there, and
// BadRecording says at which byte a file is wrong. Chunks before that byte have been read.
//
// The package knows nothing of JVMs or of how samples are taken, and builds on any operating system.
package jfr
