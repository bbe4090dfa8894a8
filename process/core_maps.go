package process

import (
	"debug/elf"
	"slices"
	"sort"
)

// readMappings makes the mappings of /proc/PID/maps from the segments and the list of files. All mappings of a file get
// the same made-up inode.
func (c *Core) readMappings() []Mapping {
	inodes := map[string]uint64{}
	var ms []Mapping
	add := func(m Mapping, path string) {
		switch {
		case m.End <= m.Start || len(ms) >= maxMappings:
			return
		case path != "":
			if inodes[path] == 0 {
				inodes[path] = uint64(len(inodes) + 1)
			}
			m.Path, m.Inode, m.Dev = path, inodes[path], 1
		case c.notes.vdso != 0 && m.Start == c.notes.vdso:
			m.Path = vdsoName
		}
		ms = append(ms, m)
	}
	files := slices.Clone(c.notes.files)
	for i := range c.segments {
		s := &c.segments[i]
		at := s.start
		for len(files) > 0 && files[0].start < s.end {
			f := &files[0]
			if f.start < at { // at least the beginning of the file's part is in no segment
				add(Mapping{Start: f.start, End: min(f.end, at), Offset: f.offset, Perm: c.permOf(f)}, f.path)
				files = skip(files, at)
				continue
			}
			add(Mapping{Start: at, End: f.start, Perm: permOf(s.flags)}, "")
			end := min(f.end, s.end)
			add(Mapping{Start: f.start, End: end, Offset: f.offset, Perm: permOf(s.flags)}, f.path)
			at = end
			files = skip(files, at)
		}
		add(Mapping{Start: at, End: s.end, Perm: permOf(s.flags)}, "")
	}
	for i := range files {
		f := &files[i]
		add(Mapping{Start: f.start, End: f.end, Offset: f.offset, Perm: c.permOf(f)}, f.path)
	}
	sort.Slice(ms, func(i, j int) bool { return ms[i].Start < ms[j].Start })
	return ms
}

// skip removes the memory below at from the files.
func skip(files []mappedPart, at uint64) []mappedPart {
	f := &files[0]
	if f.end <= at {
		return files[1:]
	}
	f.offset += at - f.start
	f.start = at
	return files
}

func permOf(flags elf.ProgFlag) (p Perm) {
	for f, perm := range map[elf.ProgFlag]Perm{elf.PF_R: PermRead, elf.PF_W: PermWrite, elf.PF_X: PermExec} {
		if flags&f != 0 {
			p |= perm
		}
	}
	return p
}

// permOf returns the permissions of a file's part that is in no segment. (gcore leaves out memory that the process has
// not changed.) They come from the file's program headers.
func (c *Core) permOf(f *mappedPart) Perm {
	progs := c.backing.progsOf(f.path)
	for i := range progs {
		p := &progs[i]
		if elf.ProgType(p.Type) == elf.PT_LOAD && p.Off < f.offset+(f.end-f.start) && f.offset < p.Off+p.Filesz {
			return permOf(elf.ProgFlag(p.Flags))
		}
	}
	return PermRead
}
