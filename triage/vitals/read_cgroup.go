//go:build linux

package vitals

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"goprof/process/maybe"
	"goprof/process/procfs"
)

// readCgroup reads the limits of the process's control groups.
func (v *Vitals) readCgroup(c *Cgroup) {
	*c = Cgroup{}
	groups := procfs.Memberships(readFile(v.file("cgroup")))
	if cpu, ok := v.groupOf(groups, "cpu"); ok {
		cpu.readCPU(c)
	}
	if memory, ok := v.groupOf(groups, "memory"); ok {
		memory.readMemory(c)
	}
	if tasks, ok := v.groupOf(groups, "pids"); ok {
		c.Tasks = tasks.tightest("pids.current", "pids.max")
	}
}

// group is a control group with the groups above it, as far as goprof sees them.
type group struct{ procfs.Group }

// groupOf finds the process's group for a controller.
func (v *Vitals) groupOf(memberships []procfs.Membership, controller string) (g group, ok bool) {
	found, ok := procfs.GroupOf(memberships, v.mounts, controller)
	return group{found}, ok
}

// readCPU reads the lowest limit on CPU time, and how often it was reached.
func (g *group) readCPU(c *Cgroup) {
	for _, dir := range g.Dirs {
		cpus, limited, ok := g.cpuLimit(dir)
		if !ok {
			continue
		}
		if !c.Limited.Or(false) {
			c.Limited = maybe.Known(limited)
		}
		if least, known := c.CPUs.Get(); !limited || known && least <= cpus {
			continue
		}
		c.CPUs = maybe.Known(cpus)
		t, ok := procfs.ParseThrottling(readFile(path.Join(dir, "cpu.stat")))
		c.Periods, c.Throttled = maybe.If(t.Periods, ok), maybe.If(t.Throttled, ok)
		c.ThrottledTime = maybe.If(t.Time, ok)
	}
}

// cpuLimit reads a group's own limit. The topmost group of a hierarchy has no limit and no file for it. The same is
// true of a group for which the controller is off.
func (g *group) cpuLimit(dir string) (cpus float64, limited, ok bool) {
	name := "cpu.max"
	if g.Version == 1 {
		name = "cpu.cfs_quota_us"
	}
	b, err := procfs.Read(path.Join(dir, name), procfs.MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		_, err := os.Stat(dir)
		return 0, false, err == nil
	}
	if g.Version == 1 {
		return procfs.CPUQuota(b, readFile(path.Join(dir, "cpu.cfs_period_us")))
	}
	return procfs.CPUMax(b)
}

// readMemory reads the lowest limit on memory, its use, and the kills.
func (g *group) readMemory(c *Cgroup) {
	m := g.Group.Memory()
	c.Memory, c.Cache, c.MemoryLimited = Pool{Used: m.Used, Max: m.Max}, m.Cache, m.Limited
	c.Kills = maybe.If(g.OOMKills())
}

// tightest returns the lowest limit, and the use of the group that has this limit. Without a limit it returns the use
// of the process's own group.
func (g *group) tightest(current, limit string) (p Pool) {
	for i, dir := range g.Dirs {
		used := maybe.If(procfs.Number(readFile(path.Join(dir, current))))
		if i == 0 {
			p.Used = used
		}
		n, limited, ok := procfs.MemoryLimit(readFile(path.Join(dir, limit)))
		if ok && limited && n < p.Max.Or(n+1) {
			p.Used, p.Max = used, maybe.Known(n)
		}
	}
	return p
}
