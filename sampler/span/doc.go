// Package span reads the span that a thread works for (look.Context) when the kernel takes a sample of the thread. A
// BPF program reads it in the kernel, so no thread is stopped. The kernel runs the program on the thread's own CPU, in
// its interrupt or system call. The thread cannot run meanwhile, so the record is consistent.
package span
