//go:build linux

package session

import (
	"goprof/process/procfs"
	"goprof/profile"
)

// The kernel may kill the process during a recording, because its control group is at its memory limit. The JVM cannot
// log that.

// memoryGroup is the control group whose memory the process uses.
type memoryGroup struct {
	procfs.Group
	kills uint64 // how many of its processes the kernel had killed when the recording began
	known bool   // the kernel reports the kills
}

func memoryGroupOf(pid int) (g memoryGroup) {
	b, _ := procfs.Read(procfs.TaskFile(pid, pid, "cgroup"), procfs.MaxFile)
	mounts, _ := procfs.Read("/proc/self/mountinfo", procfs.MaxMountinfo)
	if group, ok := procfs.GroupOf(procfs.Memberships(b), procfs.CgroupMounts(mounts), "memory"); ok {
		g.Group = group
		g.kills, g.known = group.OOMKills()
	}
	return g
}

// endNotes returns the note that the kernel has killed a process of the group during the recording. It returns none if
// the recorded process has not ended.
func (g *memoryGroup) endNotes(ended bool) []profile.Note {
	now, known := g.OOMKills()
	if !ended || !g.known || !known || now <= g.kills {
		return nil
	}
	return []profile.Note{{Name: profile.OutOfMemory,
		Text: "the process ended, and the kernel killed a process of its control group " + g.Path +
			" for want of memory: the group, one above it or the machine had none left",
		Remedy: "goprof memory PID, before it ends; or more memory for its container or the machine"}}
}
