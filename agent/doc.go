//go:build linux

// Package agent watches a host. It finds JVMs as they start, and records those that use CPU time. At a fixed interval
// it hands on a batch of samples of each JVM.
//
// An Agent needs three things: a World, Settings, and a function that receives the batches. The World lists processes
// and attaches to them (ThisHost is the real one). The function must not wait. The Agent also provides Metrics. A
// problem with a JVM is no error of the agent. If the agent cannot record a JVM, it reports that once and counts it. It
// tries again after 30 s, and then less and less often, unless goprof can never read that JVM.
//
// At first the agent only reads a JVM's CPU clock each second. It attaches when the JVM uses enough CPU time for one
// sample in each batch. It releases a JVM that uses less than half of that for a minute. In mode wall it attaches to
// every JVM that the settings want, and does not release idle JVMs.
//
// All of the agent's state belongs to the goroutine of Agent.Run. Each recording has a goroutine of its own, which
// reports to Run; batches are cut under a lock.
package agent
