// Package events is the engine for events: calls of functions, and counters of the kernel. Functions have uprobes, each
// with a BPF program. The program counts all hits, decides which hits become samples, and sets what a sample stands
// for. No thread is stopped.
package events
