//go:build linux

// Package agent watches a host. It finds JVMs as they start, and records all that use CPU time. At a fixed interval it
// hands on a batch of samples of each JVM.
//
// It takes a World, which lists processes and attaches to them (ThisHost is the real one), Settings, and a function
// that takes the batches and does not wait. It also provides Metrics. A problem with a JVM is no error of the agent.
// If the agent cannot record a JVM, it reports that once, counts it, and does not try again.
//
// At first the agent only reads a JVM's CPU clock each second. It attaches once the JVM has used as much CPU time as
// one sample stands for, within one batch's time. After a minute in which the JVM used less, the agent lets it go
// again.
//
// All of the agent's state belongs to the goroutine of Agent.Run. Each recording has a goroutine of its own, which
// reports to Run; batches are cut under a lock.
package agent
