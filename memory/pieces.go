package memory

import (
	"cmp"
	"path"
	"sort"
	"strings"

	"goprof/process"
	"goprof/profile"
)

// piece is a range of one mapping that serves one purpose.
type piece struct {
	start, end uint64
	m          *process.Mapping
	part, name string // empty: not yet known
}

// claim says what a range of addresses is for.
type claim struct {
	start, end uint64
	part, name string
	anonymous  bool // only the memory that belongs to no file
}

// wholePages extends claims to page boundaries. The JVM's data may hold any address, and each page is counted once.
func wholePages(claims []claim, page uint64) (whole []claim) {
	for _, c := range claims {
		end := (c.end + page - 1) &^ (page - 1)
		if c.start < c.end && end != 0 { // 0: it would lie beyond the last address
			c.start, c.end = c.start&^(page-1), end
			whole = append(whole, c)
		}
	}
	return whole
}

// cut gives each piece without a purpose the purpose of the claim in which it lies, and cuts pieces where a claim
// begins or ends. If claims overlap, the lower one counts.
func cut(pieces []piece, claims []claim) (cut []piece) {
	sort.SliceStable(claims, func(i, j int) bool { return claims[i].start < claims[j].start })
	next := 0
	for _, p := range pieces {
		if p.part != "" {
			cut = append(cut, p)
			continue
		}
		for next < len(claims) && claims[next].end <= p.start {
			next++
		}
		for i := next; i < len(claims) && claims[i].start < p.end && p.start < p.end; i++ {
			c := &claims[i]
			if c.end <= p.start || c.anonymous && p.m.Inode != 0 {
				continue
			}
			if c.start > p.start {
				before := p
				before.end = c.start
				cut = append(cut, before)
			}
			inside := p
			inside.start, inside.end = max(p.start, c.start), min(p.end, c.end)
			inside.part, inside.name = c.part, c.name
			cut = append(cut, inside)
			p.start = inside.end
		}
		if p.start < p.end {
			cut = append(cut, p)
		}
	}
	return cut
}

// maxBSS bounds the zeroed variables of a library, which are in an anonymous mapping after the library. A larger
// mapping there has another purpose.
const maxBSS = 4 << 20

// byMapping finds the purpose of the other pieces by their mappings.
func byMapping(pieces []piece) {
	programs := map[uint64]bool{} // inodes of files with code
	for i := range pieces {
		if m := pieces[i].m; m.Perm&process.PermExec != 0 && m.Inode != 0 {
			programs[m.Inode] = true
		}
	}
	for i := range pieces {
		p := &pieces[i]
		if p.part != "" {
			continue
		}
		base := path.Base(p.m.Path)
		switch {
		case strings.HasPrefix(base, "java_heap") || strings.HasPrefix(p.m.Path, "/memfd:java_heap"):
			p.part = profile.HeapPartOfMemory // ZGC's (gc/z/zPhysicalMemoryBacking_linux.cpp)
		case p.m.Inode != 0 && strings.HasSuffix(base, ".jsa"):
			p.part, p.name = profile.ClassArchive, p.m.Path
		case p.m.Inode != 0 && programs[p.m.Inode]:
			p.part, p.name = profile.LibraryMemory, p.m.Path
		case p.m.Inode != 0:
			p.part, p.name = profile.MappedFiles, p.m.Path
		case p.m.Path == "[heap]":
			p.part, p.name = profile.MallocMemoryPart, mainArena
		case p.m.Path == "[stack]":
			p.part = profile.ThreadStacks
		case strings.HasPrefix(p.m.Path, "[v"): // vdso, vvar, vsyscall
			p.part, p.name = profile.LibraryMemory, p.m.Path
		case strings.HasPrefix(p.m.Path, "[anon: glibc: malloc"):
			p.part, p.name = profile.MallocMemoryPart, mappedPiece
		case i > 0 && p.m.Path == "" && p.end-p.start <= maxBSS && pieces[i-1].end == p.start &&
			pieces[i-1].part == profile.LibraryMemory && pieces[i-1].m.Inode != 0:
			p.part, p.name = profile.LibraryMemory, pieces[i-1].name
		}
	}
}

// Names of pieces of malloc.
const (
	mainArena   = "main arena"
	threadArena = "arenas of threads"
	mappedPiece = "pieces with a mapping each"
)

// order sorts parts of the same size.
var order = []string{profile.HeapPartOfMemory, profile.MallocMemoryPart, profile.Metaspace, profile.ClassSpace,
	profile.CodeCache, profile.ThreadStacks, profile.CollectorTables, profile.ClassArchive, profile.MappedFiles,
	profile.LibraryMemory, profile.UnnamedMemory}

// mostPieces is the number of pieces of a part that the result names.
const mostPieces = 20

// counted is a piece and its bytes in memory.
type counted struct {
	piece
	pageCount
}

// partsOf adds up the pieces of each part. The largest part comes first.
func partsOf(pieces []counted) (parts []profile.MemoryPart) {
	sums := map[string]*profile.MemoryPart{}
	named := map[[2]string]*profile.MemoryPiece{}
	last := map[string]uint64{} // the end of the last piece of each part
	for i := range pieces {
		p := &pieces[i]
		name := cmp.Or(p.part, profile.UnnamedMemory)
		s := sums[name]
		if s == nil {
			s = &profile.MemoryPart{Name: name}
			sums[name] = s
		}
		s.Resident += p.resident
		s.Anonymous += p.anonymous
		s.Swapped += p.swapped
		s.Reserved += p.end - p.start
		if p.m.Perm&(process.PermRead|process.PermWrite) != 0 {
			s.Committed += p.end - p.start
		}
		if p.name == "" {
			if last[name] != p.start {
				s.Count++
			}
			last[name] = p.end
			continue
		}
		key := [2]string{name, p.name}
		if named[key] == nil {
			named[key] = &profile.MemoryPiece{Name: p.name}
			s.Count++
		}
		named[key].Resident += p.resident
		named[key].Reserved += p.end - p.start
	}
	for key, p := range named {
		sums[key[0]].Pieces = append(sums[key[0]].Pieces, *p)
	}
	for _, name := range order {
		if s := sums[name]; s != nil {
			sort.Slice(s.Pieces, func(i, j int) bool {
				a, b := &s.Pieces[i], &s.Pieces[j]
				return cmp.Or(cmp.Compare(b.Resident, a.Resident), cmp.Compare(a.Name, b.Name)) < 0
			})
			s.Pieces = s.Pieces[:min(len(s.Pieces), mostPieces)]
			parts = append(parts, *s)
		}
	}
	sort.SliceStable(parts, func(i, j int) bool { return parts[i].Resident > parts[j].Resident })
	return parts
}
