// Package perf is the engine whose samples of CPU time the kernel takes, by perf_event_open(2). No thread is stopped.
// One event for each CPU copies registers and stack of the thread that runs there into a ring (wide.go); threads that
// run virtual ones have events of their own (threads.go).
//
// A Group shares the events of the CPUs among many processes.
package perf
