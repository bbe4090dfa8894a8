// Package threads keeps the account of CPU time of one process: which threads there are, what the kernel has charged
// each, which of them are owed a sample, and which sample carries which time. It reads /proc/PID/task, as little as it
// can, and looks at no thread.
package threads
