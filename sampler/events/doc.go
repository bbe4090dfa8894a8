// Package events is the engine for samples of events: calls of functions, by uprobes with a BPF program each, and
// counters of the kernel. The program counts all hits, decides which hits become samples, and says how much a sample
// stands for. No thread is stopped.
package events
