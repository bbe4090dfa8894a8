//go:build linux

package procfs

import "testing"

// TestFrozenBy finds the group that was set to be frozen, in both versions, and also above the process's own group.
func TestFrozenBy(t *testing.T) {
	mounts := []CgroupMount{{Version: 1, Controllers: []string{"freezer"}, Root: "/", Point: "/sys/fs/cgroup/freezer"},
		{Version: 1, Controllers: []string{"cpu"}, Root: "/", Point: "/sys/fs/cgroup/cpu"},
		{Version: 2, Root: "/", Point: "/sys/fs/cgroup/unified"}}
	id := "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for name, c := range map[string]struct {
		cgroup, file, group, thaw string
	}{
		"version 2": {"3:cpu:/a\n0::/a/b\n", "/sys/fs/cgroup/unified/a/b/cgroup.freeze", "/a/b",
			"echo 0 >/sys/fs/cgroup/unified/a/b/cgroup.freeze"},
		"version 2, the group above": {"0::/a/b\n", "/sys/fs/cgroup/unified/a/cgroup.freeze", "/a",
			"echo 0 >/sys/fs/cgroup/unified/a/cgroup.freeze"},
		"version 1": {"6:freezer:/a\n0::/\n", "/sys/fs/cgroup/freezer/a/freezer.self_freezing", "/a",
			"echo THAWED >/sys/fs/cgroup/freezer/a/freezer.state"},
		"a container": {"0::/docker/" + id + "\n", "/sys/fs/cgroup/unified/docker/" + id + "/cgroup.freeze",
			"/docker/" + id, "echo 0 >/sys/fs/cgroup/unified/docker/" + id + "/cgroup.freeze (or docker unpause " + id +
				", podman unpause " + id + ")"},
		"a name that a shell would run": {"0::/a;rm $(x)'\n", "/sys/fs/cgroup/unified/a;rm $(x)'/cgroup.freeze",
			"/a;rm $(x)'", `echo 0 >'/sys/fs/cgroup/unified/a;rm $(x)'\''/cgroup.freeze'`},
		"of another hierarchy":    {"3:cpu:/a\n0::/\n", "/sys/fs/cgroup/freezer/a/freezer.self_freezing", "", ""},
		"outside of what is seen": {"0::/../a\n", "/sys/fs/cgroup/unified/../a/cgroup.freeze", "", ""},
		"not frozen":              {"6:freezer:/a\n0::/a\n", "", "", ""},
	} {
		f, seen := frozenBy(Memberships([]byte(c.cgroup)), mounts, func(file string) []byte {
			if file == c.file {
				return []byte("1\n")
			}
			return []byte("0\n")
		})
		switch {
		case f == nil && c.group == "":
		case f == nil || f.Group != c.group || f.Thaw() != c.thaw:
			t.Errorf("%s: %+v", name, f)
		}
		if seen != (name != "outside of what is seen") {
			t.Errorf("%s: seen: %v", name, seen)
		}
	}
}
