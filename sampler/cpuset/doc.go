// Package cpuset says which CPUs there are now, on which of them a thread may run, and whether any may have been off
// and on since an engine asked last.
package cpuset
