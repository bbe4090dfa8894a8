//go:build linux

package vitals

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"

	"goprof/process/maybe"
	"goprof/process/procfs"
)

// maxGroups bounds how many groups above the process's own are read.
const maxGroups = 64

// readCgroup reads what the process's control groups grant it.
func (v *Vitals) readCgroup(c *Cgroup) {
	*c = Cgroup{}
	groups := procfs.Memberships(readFile(v.file("cgroup")))
	cpu, name, ok := v.groupOf(groups, "cpu")
	if ok {
		c.Version, c.Path = maybe.Known(cpu.version), name
		cpu.readCPU(c)
	}
	if memory, _, ok := v.groupOf(groups, "memory"); ok {
		memory.readMemory(c)
	}
	if tasks, _, ok := v.groupOf(groups, "pids"); ok {
		c.Tasks = tasks.tightest("pids.current", "pids.max")
	}
	if cpu.version == 2 && len(cpu.dirs) > 0 {
		read := func(name string) maybe.Value[procfs.Pressure] {
			return maybe.If(procfs.ParsePressure(readFile(path.Join(cpu.dirs[0], name))))
		}
		c.CPUPressure, c.MemoryPressure, c.IOPressure = read("cpu.pressure"), read("memory.pressure"), read("io.pressure")
	}
}

// group is a control group and those above it, as far as goprof sees them.
type group struct {
	version int
	dirs    []string // its own first
}

// groupOf finds the group that a controller counts for the process. A controller belongs to one hierarchy: to one of
// version 1, or else to version 2.
func (v *Vitals) groupOf(memberships []procfs.Membership, controller string) (g group, name string, ok bool) {
	version := 2
	for _, m := range memberships {
		if slices.Contains(m.Controllers, controller) {
			version = 1
		}
	}
	for _, m := range memberships {
		if version == 1 && !slices.Contains(m.Controllers, controller) || version == 2 && len(m.Controllers) > 0 {
			continue
		}
		for i := range v.mounts {
			mount := &v.mounts[i]
			dir, seen := mount.Dir(m.Path)
			if mount.Version != version || !mount.Controls(controller) || !seen {
				continue
			}
			return group{version, upTo(dir, mount.Point)}, m.Path, true
		}
	}
	return group{}, "", false
}

// upTo lists a directory and those above it, to the topmost.
func upTo(dir, top string) (dirs []string) {
	for range maxGroups {
		dirs = append(dirs, dir)
		if dir == top || dir == "/" {
			break
		}
		dir = path.Dir(dir)
	}
	return dirs
}

// readCPU reads the tightest limit on CPU time, and how often it was met.
func (g *group) readCPU(c *Cgroup) {
	for _, dir := range g.dirs {
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
	if g.version == 1 {
		name = "cpu.cfs_quota_us"
	}
	b, err := procfs.Read(path.Join(dir, name), procfs.MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		_, err := os.Stat(dir)
		return 0, false, err == nil
	}
	if g.version == 1 {
		return procfs.CPUQuota(b, readFile(path.Join(dir, "cpu.cfs_period_us")))
	}
	return procfs.CPUMax(b)
}

// readMemory reads the tightest limit on memory, and what came of it.
func (g *group) readMemory(c *Cgroup) {
	own := g.dirs[0]
	if g.version == 1 {
		c.Memory = g.tightest("memory.usage_in_bytes", "memory.limit_in_bytes")
		c.Kills = maybe.If(procfs.Keyed(readFile(path.Join(own, "memory.oom_control")), "oom_kill"))
		c.Swapped = maybe.If(procfs.Keyed(readFile(path.Join(own, "memory.stat")), "swap"))
		return
	}
	c.Memory = g.tightest("memory.current", "memory.max")
	events := readFile(path.Join(own, "memory.events"))
	c.OOMs, c.Kills = maybe.If(procfs.Keyed(events, "oom")), maybe.If(procfs.Keyed(events, "oom_kill"))
	c.Swapped = maybe.If(procfs.Number(readFile(path.Join(own, "memory.swap.current"))))
}

// tightest is how much is used of the least limit: of that group whose limit it is. Without a limit it is what the
// process's own group uses.
func (g *group) tightest(current, limit string) (p Pool) {
	for i, dir := range g.dirs {
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
