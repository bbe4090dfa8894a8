//go:build linux

package diagnose

// silentCause is why nothing more can be said of a process.
func (h Host) silentCause(pid int) Cause {
	return Cause{Name: "hangs",
		Why:    "its memory, or a file that it has mapped, does not answer (userfaultfd, FUSE, NFS or swap)",
		Remedy: "cat /proc/" + itoa(pid) + "/stack; mount | grep -E 'fuse|nfs'"}
}
