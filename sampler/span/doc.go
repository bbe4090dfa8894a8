// Package span has the kernel read for which span a thread works (look.Context), when the kernel takes a sample of the
// thread. A BPF program reads it, so no thread is stopped. The thread stands still meanwhile: the kernel runs the
// program on the thread's own CPU, in its interrupt or system call. So the record is in one piece.
package span
