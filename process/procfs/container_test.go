package procfs

import "testing"

const (
	id      = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	other   = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
	short   = "0123456789abcdef0123456789abcdef"
	uid     = "11111111-2222-3333-4444-555555555555"
	uidLine = "11111111_2222_3333_4444_555555555555"
)

// TestContainerOf reads /proc/PID/cgroup as container runtimes make it.
func TestContainerOf(t *testing.T) {
	for name, c := range map[string]struct {
		cgroup string
		want   Container
	}{
		"v2, systemd, containerd": {"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + uidLine +
			".slice/cri-containerd-" + id + ".scope\n", Container{id, uid}},
		"v2, systemd, CRI-O": {"0::/kubepods.slice/kubepods-pod" + uidLine + ".slice/crio-" + id + ".scope\n",
			Container{id, uid}},
		"v2, cgroupfs, guaranteed": {"0::/kubepods/pod" + uid + "/" + id + "\n", Container{id, uid}},
		"v2, cgroupfs, besteffort": {"0::/kubepods/besteffort/pod" + uid + "/" + id + "\n", Container{id, uid}},
		"v2, of a static pod":      {"0::/kubepods/pod" + short + "/" + id + "\n", Container{id, short}},
		"v1, cgroupfs": {"12:memory:/kubepods/burstable/pod" + uid + "/" + id + "\n11:cpu,cpuacct:/kubepods/burstable/pod" +
			uid + "/" + id + "\n1:name=systemd:/kubepods/burstable/pod" + uid + "/" + id + "\n", Container{id, uid}},
		"v1, containerd's colons": {"8:cpuset:/system.slice/containerd.service/kubepods-burstable-pod" + uidLine +
			".slice:cri-containerd:" + id + "\n", Container{id, uid}},
		"v1, Docker":           {"9:pids:/docker/" + id + "\n", Container{ID: id}},
		"v2, Docker":           {"0::/system.slice/docker-" + id + ".scope\n", Container{ID: id}},
		"v2, Podman":           {"0::/machine.slice/libpod-" + id + ".scope/container\n", Container{ID: id}},
		"v1, Docker in Docker": {"9:pids:/docker/" + other + "/docker/" + id + "\n", Container{ID: id}},
		"a name space's view": {"0::/../../kubepods-burstable-pod" + uidLine + ".slice/cri-containerd-" + id + ".scope\n",
			Container{id, uid}},
		"ECS":              {"4:cpu:/ecs/" + short + "/" + short + "-3405691582\n", Container{ID: short + "-3405691582"}},
		"a service":        {"0::/system.slice/shop.service\n", Container{}},
		"a user's session": {"0::/user.slice/user-1000.slice/session-3.scope\n", Container{}},
		"its own root":     {"0::/\n", Container{}},
		"a name that lies": {"0::/podx" + uid + "/" + id + "0\n", Container{}},
		"nothing":          {"", Container{}},
	} {
		got := ContainerOf(CgroupPaths([]byte(c.cgroup)))
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
