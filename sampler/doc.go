// Package sampler decides which thread of a process to look at and when, and hands out look.Looks in a Queue. It
// knows schedules, CPU time and /proc/PID/task, and nothing of Java.
//
// There are three engines:
//
//   - Sampler stops the threads that use CPU time. It meets them on their CPUs (visit.go), or looks for them where that
//     cannot be done (scan.go).
//   - Wall looks at every thread in each interval, whatever the thread does (wall.go).
//   - Perf has the kernel take the samples (perf.go).
//
// The first two look at threads by package ptrace, which promises the program that none of its threads is ever left
// stopped. Perf stops nobody.
//
// Each look has an Outcome, and none is forgotten: attempted = taken + the sum of the others (Stats).
package sampler
