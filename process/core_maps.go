package process

import (
	"debug/elf"
	"slices"
)

// readMappings makes of segments, and of the list of files, what /proc/PID/maps would have said. Instead of a file's
// inode there is a number of our own, the same for each part of a file.
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
			if f.start < at { // nothing of this part, or not all of it, is a segment
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
	slices.SortFunc(ms, func(a, b Mapping) int {
		if a.Start < b.Start {
			return -1
		}
		return 1
	})
	return ms
}

// skip leaves out what lies below at.
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

// permOf is what may be done with a part of a file that is no segment: gcore leaves those out that it has not written.
// The file's own headers tell, which are in the core, or in the file.
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
