//go:build linux

package diagnose

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"goprof/testdata/host"
)

// TestContainerOf: what container runtimes make /proc/PID/cgroup look like, on hosts with cgroups of version 1, 2
// and both.
func TestContainerOf(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	other := strings.Repeat("fedcba9876543210", 4)
	for _, c := range []struct{ name, cgroup, want string }{
		{"no container", "0::/system.slice/petclinic.service\n", ""},
		{"its own cgroup namespace", "0::/\n", ""},
		{"docker, v1", "12:memory:/docker/" + id + "\n1:name=systemd:/docker/" + id + "\n0::/\n", "0123456789ab"},
		{"docker, v1, one hierarchy only", "3:cpuset:/\n2:pids:/docker/" + id + "\n", "0123456789ab"},
		{"docker, v2", "0::/docker/" + id, "0123456789ab"},
		{"docker, v2, systemd", "0::/system.slice/docker-" + id + ".scope\n", "0123456789ab"},
		{"seen from a sibling", "0::/../docker-" + id + ".scope\n", "0123456789ab"},
		{"podman", "0::/machine.slice/libpod-" + id + ".scope/container\n", "0123456789ab"},
		{"kubernetes, containerd", "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1d2c.slice/" +
			"cri-containerd-" + id + ".scope\n", "0123456789ab"},
		{"kubernetes, v1", "5:pids:/kubepods/besteffort/pod8f1e2d3c-0000-4000-8000-0123456789ab/" + id + "\n",
			"0123456789ab"},
		{"cri-o", "0::/kubepods.slice/crio-" + id + ".scope\n", "0123456789ab"},
		{"docker in docker", "0::/docker/" + other + "/docker/" + id + "/init\n", "0123456789ab"},
		{"lxc", "0::/lxc.payload.web-1/system.slice/a.service\n", "web-1"},
		{"lxc, v1", "4:memory:/lxc/web.2/x\n", "web.2"},
		{"nspawn", "0::/machine.slice/machine-deb.scope/payload\n", "deb"},
		{"63 digits", "0::/docker/" + id[1:] + "\n", ""},
		{"65 digits", "0::/docker/" + id + "0\n", ""},
		{"hostile", "0::/lxc/\x1b[2J\n0:/docker/" + id + "\nx\n::\n", ""},
		{"empty", "", ""},
	} {
		if got := containerOf([]byte(c.cgroup)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestContainerOfCgroup: the file comes from the kernel, if this machine lets the test make a cgroup.
func TestContainerOfCgroup(t *testing.T) {
	host.NeedRoot(t)
	id := strings.Repeat("00c0ffee", 8)
	tried := 0
	for version, parent := range map[string]string{"1": "/sys/fs/cgroup/pids", "2": "/sys/fs/cgroup/unified",
		"2, alone": "/sys/fs/cgroup"} {
		group := filepath.Join(parent, "docker-"+id+".scope")
		if _, err := os.Stat(filepath.Join(parent, "cgroup.procs")); err != nil || os.Mkdir(group, 0o755) != nil {
			continue
		}
		t.Run(version, func(t *testing.T) {
			defer os.Remove(group)
			tried++
			pid := startChild(t, nil, "sleep")
			if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(itoa(pid)), 0); err != nil {
				t.Skipf("this machine lets nobody into a cgroup of its own: %v", err)
			}
			if got := (Host{}).container(pid); got != "00c0ffee00c0" {
				b, _ := os.ReadFile("/proc/" + itoa(pid) + "/cgroup")
				t.Errorf("%q of\n%s", got, b)
			}
			syscall.Kill(pid, syscall.SIGKILL)
			host.WaitFor(t, "the cgroup is empty", func() bool { return os.Remove(group) == nil })
		})
	}
	if tried == 0 {
		t.Skip("this machine lets nobody make a cgroup")
	}
}
