//go:build linux

package diagnose

// silentCause says why no more can be told of a process: its memory does not answer.
func (h Host) silentCause(pid int) Cause {
	return Cause{Name: "hangs",
		Why:    "its memory, or a file that it has mapped, does not answer (userfaultfd, FUSE, NFS or swap)",
		Remedy: "cat /proc/" + itoa(pid) + "/stack; mount | grep -E 'fuse|nfs'"}
}
