//go:build linux

package diagnose

import (
	"bytes"
	"regexp"
	"strings"
)

// containerNames are how a cgroup's path tells of a container. Docker, Podman, containerd and CRI-O put its id,
// 64 hexadecimal digits, somewhere into the last part that is theirs, whether systemd makes the groups or not
// ("/docker/ID", "docker-ID.scope", "libpod-ID.scope/container", "cri-containerd-ID.scope", "/kubepods/burstable/podUID/ID");
// the first twelve do for "docker ps". Others put names.
var containerNames = []*regexp.Regexp{
	regexp.MustCompile(`\b([0-9a-f]{12})[0-9a-f]{52}\b`),
	regexp.MustCompile(`/lxc(?:\.payload\.|/)([0-9A-Za-z][0-9A-Za-z_.-]{0,63})`),
	regexp.MustCompile(`/machine\.slice/machine-([0-9A-Za-z][0-9A-Za-z_.\\-]{0,63})\.scope`),
}

// container names the container of a process by its cgroups, empty if there is none that they tell of. Who is in a
// cgroup namespace of his own sees only what lies below.
func (h Host) container(pid int) string {
	b, _ := h.read(h.file(pid, "cgroup"), maxProcFile)
	return containerOf(b)
}

// containerOf reads /proc/PID/cgroup, "hierarchy:controllers:path" (cgroups(7)): one line in version 2 ("0::path"),
// one for each hierarchy in version 1. A process may be in a container's group in some of them only; the innermost
// container has the last word of a path.
func containerOf(cgroup []byte) string {
	for _, name := range containerNames {
		for line := range bytes.Lines(cgroup) {
			parts := strings.SplitN(strings.TrimSuffix(string(line), "\n"), ":", 3)
			if len(parts) < 3 {
				continue
			}
			if found := name.FindAllStringSubmatch(parts[2], -1); found != nil {
				return found[len(found)-1][1]
			}
		}
	}
	return ""
}
