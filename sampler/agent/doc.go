//go:build linux

// Package agent watches a host. It finds JVMs as they start and records all that use CPU time. Of each JVM it hands on
// a batch of what was seen each so many seconds.
//
// What you give: a World, which tells what runs and attaches to it (ThisHost is the real one), Settings, and a function
// that takes batches and does not wait. What you get: batches, and Metrics. Nothing of a JVM is an error of the
// agent's: a JVM that cannot be looked at is said once, counted, and left alone.
//
// A JVM costs nothing but a reading of its CPU clock each second until it has used as much CPU time as one sample
// stands for, within one batch's time. Only then is it attached to. After a minute without that much it is let go
// again.
//
// All of the agent's state belongs to the goroutine of Agent.Run. Each recording has a goroutine of its own, which
// tells Run what became of it; batches are cut under a lock.
package agent
