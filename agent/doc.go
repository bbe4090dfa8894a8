//go:build linux

// Package agent watches a host. It finds JVMs as they start, and records all that use CPU time. At a fixed interval it
// hands on a batch of what was seen of each JVM.
//
// It takes a World, which reports what runs and attaches to it (ThisHost is the real one), Settings, and a function
// that takes batches and does not wait. It returns batches, and Metrics. A problem with a JVM is no error of the agent.
// The agent names a JVM that it cannot record once, counts it, and leaves it alone.
//
// At first the agent only reads a JVM's CPU clock each second. It attaches once the JVM has used as much CPU time as
// one sample stands for, within one batch's time. After a minute in which the JVM used less, the agent lets it go
// again.
//
// All of the agent's state belongs to the goroutine of Agent.Run. Each recording has a goroutine of its own, which
// reports to Run; batches are cut under a lock.
package agent
