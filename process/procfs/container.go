package procfs

import (
	"cmp"
	"regexp"
	"strings"
)

// Container has the container's names that appear in the paths of control groups. They are empty if not known.
type Container struct {
	ID  string // 64 hexadecimal digits, or the container's id in Amazon's ECS
	Pod string // the uid of its Kubernetes pod, with hyphens
}

var (
	// containerID is an id of Docker, containerd, CRI-O and Podman at the end of a part of a path. Some runtimes write a
	// word before it: docker-ID.scope, cri-containerd-ID.scope, crio-ID.scope, libpod-ID.scope. Parts are separated by
	// slashes or colons (x.slice:cri-containerd:ID).
	containerID = regexp.MustCompile(`^(?:[a-z][a-z-]{0,40}-)?([0-9a-f]{64})(?:\.scope)?$`)
	// taskID is an id of Amazon's ECS and Fargate: that of a task, and the number of a container.
	taskID = regexp.MustCompile(`^([0-9a-f]{32}-[0-9]{1,12})$`)
	// podUID is the uid of a pod: pod1234..., kubepods-burstable-pod1234_....slice. The uid of a static pod (from a file)
	// has 32 digits without hyphens.
	podUID = regexp.MustCompile(`^(?:kubepods-(?:burstable-|besteffort-)?)?pod` +
		`([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?$`)
)

// ContainerOf reads the paths of /proc/PID/cgroup, of both versions. If a path has several ids, the last one counts,
// because a container may run inside another. If the process has a cgroup namespace of its own, the path is "/" and the
// result is empty.
func ContainerOf(paths []string) (c Container) {
	for _, path := range paths {
		var found Container
		for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == ':' }) {
			if m := podUID.FindStringSubmatch(part); m != nil {
				found.Pod = strings.ReplaceAll(m[1], "_", "-")
			}
			if m := containerID.FindStringSubmatch(part); m != nil {
				found.ID = m[1]
			} else if m := taskID.FindStringSubmatch(part); m != nil && strings.Contains(path, "/ecs/") {
				found.ID = m[1]
			}
		}
		c.ID = cmp.Or(c.ID, found.ID)
		c.Pod = cmp.Or(c.Pod, found.Pod)
	}
	return c
}
