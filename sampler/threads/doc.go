// Package threads keeps the account of CPU time of one process: its threads, their CPU time by the kernel's count,
// which of them are due for a sample, and how much time each sample carries. It reads as little as possible of
// /proc/PID/task, and takes no looks.
package threads
