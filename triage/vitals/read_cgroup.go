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

// readCgroup reads what the process's control groups grant it.
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

// group is a control group and those above it, as far as goprof sees them.
type group struct{ procfs.Group }

// groupOf finds the group that a controller counts for the process.
func (v *Vitals) groupOf(memberships []procfs.Membership, controller string) (g group, ok bool) {
	found, ok := procfs.GroupOf(memberships, v.mounts, controller)
	return group{found}, ok
}

// readCPU reads the tightest limit on CPU time, and how often it was met.
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

// cpuLimit reads a group's own limit. The topmost group of a hierarchy has none, and no file that says so; nor has one
// for which the controller is not switched on.
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

// readMemory reads the tightest limit on memory, and what came of it.
func (g *group) readMemory(c *Cgroup) {
	m := g.Group.Memory()
	c.Memory, c.Cache, c.MemoryLimited = Pool{Used: m.Used, Max: m.Max}, m.Cache, m.Limited
	c.Kills = maybe.If(g.OOMKills())
}

// tightest returns how much is used of the least limit: of that group whose limit it is. Without a limit it is what the
// process's own group uses.
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
