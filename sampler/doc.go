// Package sampler decides which thread to look at and when, stops it for the moment
// that the look takes, and hands out process.Snapshots. It knows ptrace and
// /proc/PID/task and nothing of Java.
//
// What it promises the program that it looks at:
//
//   - One thread at a time stands still, for two system calls: its registers and one
//     copy of its stack; of one that runs a virtual thread, some more for the frames that
//     this has in the heap (pause_trail.go). Between its stop and its release there is no allocation, no
//     lock, no log and no point at which Go's scheduler could take the CPU away.
//   - A thread is seized anew for each look. A resident tracer would be asked about
//     each signal, and HotSpot makes signals by the thousand.
//   - If goprof dies at any moment, by whatever means, the kernel lets the thread go
//     on (PTRACE_SEIZE; with PTRACE_ATTACH it could stay stopped for good).
//   - A signal that arrives during a look is passed on. It is only peeked at and never
//     reaped: a reaped signal would die with its tracer.
//   - A read of its memory that does not come back holds nobody for longer than StandsAtMost: the tracing
//     thread does not read, it sends another one (desk.go). The thread is let go, and left alone (silent.go).
//   - A stop that comes late (the thread had no CPU, or slept uninterruptibly) is kept
//     on a list and collected; nobody is left stopped.
//
// All that can become of a look is an Outcome, a closed list: attempted = taken + the
// sum of the others.
package sampler
