// Package sampler holds what all engines have in common: the contract between engines, which take samples, and
// sessions, which walk them. An Engine takes samples of one process as a Config says, hands them over as look.Looks in
// a Queue, and keeps an account of them in Stats. Each look has an Outcome, and none is forgotten: attempted = taken +
// the sum of the others.
//
// The engines are packages of their own:
//
//   - visit stops the threads that use CPU time. It finds them on their CPUs, or in the list of threads if that is not
//     possible.
//   - wall looks at every thread in each interval, whatever the thread does.
//   - perf lets the kernel take samples of CPU time.
//   - events lets the kernel take samples at probes, or when a counter has counted enough.
//   - offcpu lets the kernel record each switch of threads.
//
// They build on packages that are no engines: stops (a run of an engine that stops threads), threads (how much CPU
// time each thread has used), ring (perf events and the rings they write into), cpuset (which CPUs there are), bpf
// (programs for the kernel), ptrace (one look at one thread), look (its result) and osthread (OS threads that Go does
// not know). None of them knows anything of Java.
package sampler
