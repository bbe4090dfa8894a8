// Package cpuset finds out which CPUs are online, on which of them a thread may run, and whether a CPU may have been
// switched off and on since an engine's last query.
package cpuset
