// Package visit is the engine for CPU time that stops threads. On each CPU a thread of goprof, the preempter, sleeps
// until a moment that does not depend on the program. Then the preempter takes the CPU from the running thread, and
// that thread is the sample (visit.go). If CPUs cannot be visited, package threads says which threads are due.
//
// A Group makes visits for many processes at once.
package visit
