// Package offcpu is the engine for waits. The kernel records each switch of each thread of the process, with a copy of
// the thread's stack. A wait lasts from the switch away from a CPU until the switch back. No thread is stopped.
package offcpu
