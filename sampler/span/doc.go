// Package span has the kernel read for which span a thread works (look.Context), in the moment in which the kernel takes
// a sample of the thread. A BPF program does that, so no thread is stopped. The thread stands still meanwhile: the kernel
// runs the program on the thread's own CPU, in its interrupt or system call. So the record is in one piece.
package span
