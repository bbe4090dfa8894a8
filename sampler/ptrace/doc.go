// Package ptrace stops a thread of another process for a moment, takes a look.Look of it, and lets it go. It
// knows ptrace, /proc/PID/task and no Java. Whom to look at, and when, is the caller's business (package sampler).
//
// The contract: no thread is ever left stopped. What that takes is all in this package:
//
//   - One look stops one thread for two system calls: its registers and one copy of its stack. For a thread that runs a
//     virtual one there are some more, for the frames that lie in the heap (pause_trail.go). Between the stop and the
//     release there is no allocation, no lock, no log and no point at which Go's scheduler could take the CPU away
//     (pause.go).
//   - Each look seizes its thread, and lets it go (seize.go). A resident tracer would be asked about each signal, and
//     HotSpot makes signals by the thousand.
//   - A thread that lost its CPU to goprof goes on there at once: for the release the sampling thread is a SCHED_IDLE
//     thread, and another OS thread of goprof's, on an idle CPU, brings it there and gives it its priority back
//     (aside.go).
//   - If goprof dies at any moment, by whatever means, the kernel lets the thread go on. PTRACE_SEIZE has that
//     property. With PTRACE_ATTACH the thread could stay stopped for good.
//   - A signal that arrives during a look is passed on. It is only peeked at and never reaped: a reaped signal
//     would die with its tracer.
//   - A read of the target's memory that does not come back holds no thread for longer than StandsAtMost. The tracing
//     thread does not read, it sends another OS thread (reader.go). The target's thread is let go, and left alone from
//     then on (silent.go). What is read right after a pause goes the same way (memory.go). Only an Observer reads by
//     itself: it stops no thread (observer.go).
//   - A stop begins only if goprof can be expected to have a CPU for its end (admit.go).
//   - A stop that comes late is kept on a list and collected (pending.go). It comes late where the thread had no CPU to
//     stop on, or slept uninterruptibly. A thread that runs on the sampling thread's own CPU cannot stop there, so the
//     sampling thread leaves first (elsewhere.go). Where Go has the tracing thread wait meanwhile, a signal handler
//     lets the thread go (releaser.go).
//   - A Tracer lives on an OS thread that ends after it (OnOwnThread). With that OS thread the kernel lets go of all
//     that is still seized.
//   - When goprof itself is to be stopped, all such OS threads end first (suspend.go). Where goprof is stopped by
//     force, another process wakes it up to do that (watchdog.go).
//
// HoldAll is the exception: for a heap dump all threads stand still, for as long as a user has agreed to. What has been
// seized goes on with the end of its OS thread, all the same (hold.go).
//
// A Tracer looks in three ways. Look stops a thread wherever it is, and All does that for many. LookHeld stops a thread
// that has just lost its CPU to a preempter. LookUnstopped looks at a thread that sleeps, without a stop.
//
// All that can become of a look is an Outcome, a closed list. The caller owns a snapshot again as soon as the
// outcome is not Pending; a pending one comes back from Collect or Abandon.
package ptrace
