// Package ptrace stops a thread of another process for a moment, takes a look.Look of it, and releases it. The package
// knows ptrace and /proc/PID/task, but no Java. The caller decides which thread to look at, and when (package sampler).
//
// The contract: no thread is ever left stopped. These rules ensure it:
//
//   - One look stops one thread for two system calls: its registers and one copy of its stack. A thread that runs a
//     virtual thread needs some more calls, for the frames that lie in the heap (pause_trail.go). Between the stop and
//     the release there is no allocation, no lock, no log and no point at which Go's scheduler could take the CPU away
//     (pause.go).
//   - Each look seizes its thread, and releases it (seize.go). A resident tracer would be asked about each signal, and
//     HotSpot makes signals by the thousand.
//   - A thread that lost its CPU to goprof goes on there at once. To release it, the sampling thread becomes a
//     SCHED_IDLE thread. Another OS thread of goprof's, on an idle CPU, moves the sampling thread to that CPU and gives
//     it its priority back (aside.go).
//   - If goprof dies at any moment, by whatever means, the kernel lets the thread go on. PTRACE_SEIZE has that
//     property. With PTRACE_ATTACH the thread could stay stopped for good.
//   - A signal that arrives during a look is passed on. It is only peeked at and never reaped: a reaped signal
//     would die with its tracer.
//   - If a read of the target's memory never returns, a thread of the target stays stopped for StandsAtMost at most.
//     Another OS thread makes the read, not the tracing thread (reader.go). The target's thread is released, and left
//     alone until that read has returned, or for longer (silent.go). Reads right after a pause are made in the same
//     way (memory.go). Only an Observer reads on its own OS thread, because it stops no thread (observer.go).
//   - A stop begins only if goprof can be expected to have a CPU for its end (admit.go).
//   - A stop that comes late is kept on a list and collected (pending.go). A stop comes late if the thread has no CPU
//     to stop on, or sleeps uninterruptibly. A thread cannot stop on the CPU on which the sampling thread runs, so the
//     sampling thread first moves to another CPU (elsewhere.go). If Go's scheduler keeps the tracing thread waiting
//     while a thread is stopped, a signal handler releases that thread (releaser.go).
//   - A Tracer has an OS thread of its own, which ends after it (OnOwnThread). When the OS thread ends, the kernel
//     releases all threads that are still seized.
//   - When goprof itself is to be stopped, all such OS threads end first (suspend.go). If goprof is stopped by
//     force, another process wakes it up to do that (watchdog.go).
//
// HoldAll is the exception: for a heap dump all threads are stopped, for as long as a user has agreed to. These
// threads, too, go on when the OS thread that seized them ends (hold.go).
//
// A Tracer looks in three ways. Look stops a thread wherever it is, and AllUntil does that for many. LookHeld stops a
// thread that has just lost its CPU to a preempter. LookUnstopped looks at a thread that sleeps, without a stop.
//
// Each look has an Outcome, one of a closed list. The caller owns a snapshot again as soon as the outcome is not
// Pending. Collect or Abandon gives a pending snapshot back.
package ptrace
