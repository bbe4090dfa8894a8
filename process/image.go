package process

import (
	"slices"
	"sort"
)

// group is the mappings of one loaded file.
type group struct {
	Image
	first Mapping // the lowest mapping
	all   []Mapping
	exec  []Mapping // mappings that can be executed
}

// maxPieces bounds the mappings of one file. mprotect may have split them.
const maxPieces = 64

// vdsoName is the kernel's name for the image that it maps into each process.
const vdsoName = "[vdso]"

// groupImages returns up to most mapped files that have executable mappings. A loader maps a file's segments in order,
// and the first one begins at offset 0. The same file may be loaded more than once.
func groupImages(ms []Mapping, most int) []group {
	var groups []group
	var g group
	flush := func() {
		if len(g.exec) > 0 && len(groups) < most {
			g.Name, g.Path, g.Start = g.first.Name(), g.first.Path, g.first.Start
			g.Bias = g.exec[0].Start - g.exec[0].Offset
			groups = append(groups, g)
		}
		g = group{}
	}
	for _, m := range ms {
		if m.Inode == 0 && m.Path != vdsoName {
			continue // anonymous memory between segments, such as a .bss, does not end a file
		}
		f := &g.first
		if m.Dev != f.Dev || m.Inode != f.Inode || m.Path != f.Path ||
			m.Offset == 0 && f.Offset == 0 && m.Perm&PermExec == 0 && len(g.exec) > 0 {
			flush()
		}
		if g.End == 0 {
			g.first = m
		}
		g.End = m.End
		if len(g.all) < maxPieces {
			g.all = append(g.all, m)
		}
		if m.Perm&PermExec != 0 {
			g.exec = append(g.exec, m)
		}
	}
	flush()
	return groups
}

// same reports whether both are the same file at the same addresses.
func (g *group) same(o *group) bool {
	return g.first.Start == o.first.Start && g.first.Dev == o.first.Dev && g.first.Inode == o.first.Inode &&
		g.Path == o.Path && slices.EqualFunc(g.exec, o.exec, func(a, b Mapping) bool {
		return a.Start == b.Start && a.End == b.End && a.Offset == b.Offset
	})
}

func findMapping(ms []Mapping, addr uint64) (*Mapping, bool) {
	i := sort.Search(len(ms), func(i int) bool { return addr < ms[i].End })
	if i == len(ms) || addr < ms[i].Start {
		return nil, false
	}
	return &ms[i], true
}

type execRange struct {
	start, end uint64
	image      *loaded
}

// findExec returns the image whose code is at pc.
func findExec(rs []execRange, pc uint64) (*loaded, bool) {
	i := sort.Search(len(rs), func(i int) bool { return pc < rs[i].end })
	if i == len(rs) || pc < rs[i].start {
		return nil, false
	}
	return rs[i].image, true
}

func sortExec(rs []execRange) {
	sort.Slice(rs, func(i, j int) bool { return rs[i].start < rs[j].start })
}
