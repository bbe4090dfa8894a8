package procfs

import (
	"bytes"
	"strings"
)

// CgroupPaths reads /proc/PID/cgroup, "hierarchy:controllers:path" (cgroups(7)): one line in version 2 ("0::path"), one
// for each hierarchy in version 1. No path holds a newline (kernel/cgroup/cgroup.c, cgroup_mkdir).
func CgroupPaths(b []byte) (paths []string) {
	for line := range bytes.Lines(b) {
		if parts := strings.SplitN(strings.TrimSuffix(string(line), "\n"), ":", 3); len(parts) == 3 {
			paths = append(paths, parts[2])
		}
	}
	return paths
}
