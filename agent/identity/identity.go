//go:build linux

package identity

import (
	"fmt"

	"goprof/process/procfs"
	"goprof/profile/resource"
)

// maxEnviron limits how much of an environment is read.
const maxEnviron = 256 << 10

// Enrich adds the attributes of a process. It keeps attributes that a has already. Attributes that an SDK publishes
// come before those of the environment. A source that cannot be read adds nothing.
func Enrich(pid int, a *resource.Attributes) {
	if c, ok := Context(pid); ok {
		a.AddWord(c)
	}
	if b, err := procfs.Read(fmt.Sprintf("/proc/%d/environ", pid), maxEnviron); err == nil {
		a.AddWord(resource.FromEnviron(b))
	}
	container := Container(pid)
	a.Add(container)
	a.Add(pod(firstProcess, logFolder, container.Get(resource.ContainerID)))
	if name := nodeName(); a.Get(resource.HostName) == "" {
		a.Set(resource.HostName, name)
	}
}

// Container returns the attributes of a process's container, as its control groups show them.
func Container(pid int) (a resource.Attributes) {
	b, err := procfs.Read(fmt.Sprintf("/proc/%d/cgroup", pid), procfs.MaxFile)
	if err != nil {
		return nil
	}
	c := procfs.ContainerOf(procfs.CgroupPaths(b))
	a.Set(resource.ContainerID, c.ID)
	a.Set(resource.PodUID, c.Pod)
	return a
}
