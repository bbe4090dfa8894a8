// Package visit is the engine for CPU time that stops threads. A thread of goprof sleeps on each CPU until a moment
// that does not depend on the program. Then it takes the CPU from the thread that runs there, and that thread is the
// sample (visit.go). If CPUs cannot be visited, package threads says which threads are due.
//
// A Group makes visits for many processes at once.
package visit
