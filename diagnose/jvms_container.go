//go:build linux

package diagnose

import (
	"regexp"

	"goprof/process/procfs"
)

// containerNames matches a container's name in a cgroup's path. Docker, Podman, containerd and CRI-O put the
// container's id, 64 hexadecimal digits, into the last part of the path that they create ("/docker/ID", with systemd
// "docker-ID.scope", "libpod-ID.scope/container", "cri-containerd-ID.scope", "/kubepods/burstable/podUID/ID"). "docker
// ps" shows the first twelve digits. Other runtimes put a name there.
var containerNames = []*regexp.Regexp{
	regexp.MustCompile(`\b([0-9a-f]{12})[0-9a-f]{52}\b`),
	regexp.MustCompile(`/lxc(?:\.payload\.|/)([0-9A-Za-z][0-9A-Za-z_.-]{0,63})`),
	regexp.MustCompile(`/machine\.slice/machine-([0-9A-Za-z][0-9A-Za-z_.\\-]{0,63})\.scope`),
}

// container returns the name of a process's container by the cgroups, or "" if they name none. In a cgroup namespace of
// its own, goprof sees only the groups below.
func (h Host) container(pid int) string {
	b, _ := h.read(h.file(pid, "cgroup"), procfs.MaxFile)
	return containerOf(b)
}

// containerOf reads /proc/PID/cgroup. A process may be in a container's group in some hierarchies only. The last word
// of a path names the innermost container.
func containerOf(cgroup []byte) string {
	for _, name := range containerNames {
		for _, path := range procfs.CgroupPaths(cgroup) {
			if found := name.FindAllStringSubmatch(path, -1); found != nil {
				return found[len(found)-1][1]
			}
		}
	}
	return ""
}
