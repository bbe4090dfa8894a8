// Package span makes the kernel read the context of a thread (look.Context) when the kernel takes a sample of the
// thread. A BPF program reads the context, and no thread is stopped. The thread does not run meanwhile, because the
// kernel runs the program on the thread's own CPU, in an interrupt or a system call. So the record is consistent.
package span
