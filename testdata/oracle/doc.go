//go:build linux

// Package oracle holds what goprof says of real JVMs against what another source says of them: the program's own notes
// of its stack, the instructions that a thread executes, the JVM's and gdb's words, known shares of CPU time, files and
// containers as they are.
//
// All of it goes through what package session exports, or through the command itself. It stands in testdata, which go's
// ./... leaves out, because it needs JVMs and many minutes; make test runs it, and make prove its long form.
// Oracles that begin with t.Parallel hold something against what is true at the same moment. They run side by side, after
// those that measure.
//
//   - Stacks: shadow_test.go (a Java program keeps its own stack in a mapped file; the thread is stopped at arbitrary
//     instructions), steps_test.go (a thread is stepped, and every change of its stack must be explained), jni_test.go
//     (Java and C in turns, signal handlers), virtual_test.go, live_test.go and kinds_test.go (javac, every kind of
//     frame), witness_test.go (jcmd, jhsdb and gdb look at the same threads).
//   - The topmost inlined method: leaf_test.go (against the JVM's full records; six programs are held back from whoever
//     makes rules), places_test.go, recursive_test.go, leaf_small_test.go (one answer alone can be right),
//     leaf_all_test.go (how much is certain without any flag).
//   - Names: churn_test.go and late_test.go (classes come and go; the walker is late), names_test.go, foreign_test.go.
//   - Shares: shares_test.go, handover_test.go, wall_test.go and wall_shares_test.go (each state of a thread),
//     overload_test.go (busy loops beside), jfr_test.go and beside_test.go (the JDK's recorder and async-profiler in
//     the same run).
//   - Dumps: locks_test.go (programs that know who waits for whom), dump_jstack_test.go, dump_virtual_test.go.
//   - Spans: tracing_test.go. Triage: triage_test.go (a sick and a well program for each disease). Comparisons:
//     diff_test.go (pairs of recordings of a program of which a method can be made slower).
//   - Memory and files that do not answer: silent_test.go.
package oracle
