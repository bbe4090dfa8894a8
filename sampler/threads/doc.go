// Package threads keeps the account of CPU time of one process: its threads, how much CPU time the kernel has charged
// to each, which of them are due for a sample, and how much time each sample carries. It reads /proc/PID/task as little
// as it can, and looks at no thread.
package threads
