package process

import "io"

// mappedFile reads an ELF file, by file offset, from the memory of a process that has mapped it. The vdso exists only
// in memory. The mappings of other files include headers, unwind tables and code, but neither section headers nor full
// symbols.
type mappedFile struct {
	mem    Memory
	pieces []Mapping
}

func (f *mappedFile) ReadAt(b []byte, off int64) (int, error) {
	done := 0
	for done < len(b) {
		at := uint64(off) + uint64(done)
		m := f.piece(at)
		if m == nil {
			return done, io.EOF
		}
		n := int(min(uint64(len(b)-done), m.End-m.Start-(at-m.Offset)))
		if err := f.mem.Read(m.Start+(at-m.Offset), b[done:done+n]); err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

// piece returns the mapping of a file offset, nil if there is none. If two segments share a page of the file, piece
// returns the first, where the page is unchanged. The page of a writable segment may have changed.
func (f *mappedFile) piece(off uint64) *Mapping {
	for i := range f.pieces {
		m := &f.pieces[i]
		if m.Perm&PermRead != 0 && off >= m.Offset && off-m.Offset < m.End-m.Start {
			return m
		}
	}
	return nil
}

// mappedSize returns the highest offset in the file that is mapped.
func (g *group) mappedSize() int64 {
	var size uint64
	for _, m := range g.all {
		size = max(size, m.Offset+(m.End-m.Start))
	}
	if size >= 1<<62 {
		return 0
	}
	return int64(size)
}
