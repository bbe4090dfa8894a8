//go:build linux

// Package oracle holds what goprof says of real JVMs against what another source says of them: the program's own notes
// of its stack, the instructions that a thread executes, the JVM's and gdb's words, known shares of CPU time, files and
// containers as they are.
//
// All of it goes through what package session exports, or through the command itself. It stands in testdata, which go's
// ./... leaves out, because it needs JVMs and many minutes; make test runs it, and make prove its long form. Oracles
// that begin with t.Parallel hold something against what is true at the same moment. They run side by side, after those
// that measure.
//
// The names of files begin with what is held against the truth:
//
//   - stacks: stacks_shadow_test.go (a Java program keeps its own stack in a mapped file; the thread is stopped at
//     arbitrary instructions), steps_test.go (a thread is stepped, and every change of its stack must be explained),
//     stacks_jni_test.go (Java and C in turns, signal handlers), virtual_test.go, stacks_live_test.go and
//     stacks_kinds_test.go (javac, every kind of frame), witness_test.go (jcmd, jhsdb and gdb look at the same
//     threads).
//   - leaf, the topmost inlined method: leaf_test.go (against the JVM's full records; six programs are held back from
//     whoever makes rules), leaf_places_test.go, leaf_recursive_test.go, leaf_small_test.go (one answer alone can be
//     right), leaf_all_test.go (how much is certain without any flag).
//   - names: names_churn_test.go and names_late_test.go (classes come and go; the walker is late), names_test.go.
//   - shares: shares_test.go, shares_handover_test.go, shares_overload_test.go (busy loops beside), shares_jfr_test.go
//     (the JDK's recorder in the same run). wall: each state of a thread, wall_test.go and wall_shares_test.go.
//   - locks: locks_test.go (programs that know who waits for whom), awaited_test.go (and for whose task). dump:
//     dump_jstack_test.go, dump_virtual_test.go. pools_test.go: a program that knows its executors and their queues.
//   - events: counts and bytes of events, events_beside_test.go (async-profiler in the same run).
//   - core: what a core file tells, beside the process itself.
//   - sites: JVMs in containers, other namespaces, on other kernels; what goprof opens and may do there.
//   - trouble: JVMs, memory and files that do not answer. size: goprof's own memory.
//   - tracing: spans. triage: a sick and a well program for each disease. diff: pairs of recordings of a program of
//     which a method can be made slower. matrix: every JDK in every way to run it.
package oracle
