//go:build linux

package procfs

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"goprof/process/maybe"
)

// GroupMemory is the memory of a control group: of the process's own group and the groups above it, the one with the
// tightest limit.
type GroupMemory struct {
	Used, Max maybe.Value[uint64] // if there is no limit, Max is not known, and the group is the process's own
	// Cache is the part of Used that the kernel reclaims before it kills a process: pages of files, without shared memory.
	Cache maybe.Value[uint64]
	// Limited: one of the groups has a limit.
	Limited maybe.Value[bool]
}

// OOMKills returns how many processes of the group the kernel has killed because the group, a group above it or the
// machine had no memory left (mm/oom_kill.c, __oom_kill_process).
func (g *Group) OOMKills() (n uint64, ok bool) {
	if len(g.Dirs) == 0 {
		return 0, false
	}
	file := "memory.events"
	if g.Version == 1 {
		file = "memory.oom_control"
	}
	b, _ := Read(path.Join(g.Dirs[0], file), MaxFile)
	return Keyed(b, "oom_kill")
}

func (g *Group) Memory() (m GroupMemory) {
	current, limit, cache, shared := "memory.current", "memory.max", "file", "shmem"
	if g.Version == 1 { // mm/memcontrol-v1.c, memcg1_stat_format
		current, limit, cache, shared = "memory.usage_in_bytes", "memory.limit_in_bytes", "total_cache", "total_shmem"
	}
	for i, dir := range g.Dirs {
		b, err := Read(path.Join(dir, limit), MaxFile)
		n, limited, ok := MemoryLimit(b)
		if _, err2 := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && err2 == nil {
			ok = true // the topmost group of version 2 has no limit, and no file that says so
		}
		if ok && !m.Limited.Or(false) {
			m.Limited = maybe.Known(limited)
		}
		tighter := ok && limited && n < m.Max.Or(n+1)
		if i > 0 && !tighter {
			continue
		}
		b, _ = Read(path.Join(dir, current), MaxFile)
		m.Used = maybe.If(Number(b))
		b, _ = Read(path.Join(dir, "memory.stat"), MaxFile)
		files, ok := Keyed(b, cache)
		memory, ok2 := Keyed(b, shared)
		slabs, _ := Keyed(b, "slab_reclaimable") // version 2: the kernel's cached data about files
		m.Cache = maybe.If(files-min(files, memory)+slabs, ok && ok2)
		if tighter {
			m.Max = maybe.Known(n)
		}
	}
	return m
}
