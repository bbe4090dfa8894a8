// Package perf is an engine that samples CPU time. The kernel takes the samples (perf_event_open(2)), and no thread is
// stopped. Each CPU has one event, which copies registers and stack of the running thread into a ring (wide.go). The
// carriers of virtual threads have events of their own (threads.go).
//
// A Group shares the events of the CPUs among many processes.
package perf
