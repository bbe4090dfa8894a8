package process

import (
	"cmp"
	"debug/elf"
	"errors"
	"io"
	"slices"
	"sort"
)

// segment is a range of the process's memory. Only its first have bytes are in the core file.
type segment struct {
	start, end uint64
	want       uint64 // bytes that the headers announce
	have       uint64 // bytes that the file has: fewer, if its end is missing
	offset     uint64 // in the file
	flags      elf.ProgFlag
}

// setSegments sorts the segments. If two overlap, the lower one counts.
func (c *Core) setSegments(progs []elf.Prog64) {
	for i := range progs {
		p := &progs[i]
		if elf.ProgType(p.Type) != elf.PT_LOAD || p.Memsz == 0 || p.Vaddr+p.Memsz < p.Vaddr {
			continue
		}
		want := min(p.Filesz, p.Memsz)
		have := uint64(0)
		if p.Off < uint64(c.size) {
			have = min(want, uint64(c.size)-p.Off)
		}
		if sum := c.cut + want - have; sum >= c.cut {
			c.cut = sum
		}
		c.segments = append(c.segments,
			segment{p.Vaddr, p.Vaddr + p.Memsz, want, have, p.Off, elf.ProgFlag(p.Flags)})
	}
	sort.SliceStable(c.segments, func(i, j int) bool { return c.segments[i].start < c.segments[j].start })
	end := uint64(0)
	c.segments = slices.DeleteFunc(c.segments, func(s segment) bool {
		if s.start < end {
			return true
		}
		end = s.end
		return false
	})
}

// segmentAt returns the segment that holds addr, otherwise the first segment above addr, or nil if there is none.
func (c *Core) segmentAt(addr uint64) (s *segment, holds bool) {
	i, _ := slices.BinarySearchFunc(c.segments, addr, func(s segment, a uint64) int {
		if s.end <= a {
			return -1
		}
		return 1
	})
	if i == len(c.segments) {
		return nil, false
	}
	return &c.segments[i], c.segments[i].start <= addr
}

// Read implements Memory. Bytes that are not in the core are read from the file that was mapped there.
func (c *Core) Read(addr uint64, b []byte) error { return c.read(addr, b, true) }

func (c *Core) ReadMany(rs []Range) {
	for i := range rs {
		rs[i].OK = c.Read(rs[i].Addr, rs[i].Buf) == nil
	}
}

// ReadUpTo reads the bytes at addr that are available.
func (c *Core) ReadUpTo(addr uint64, b []byte) int {
	for done := 0; done < len(b); {
		n := c.readPiece(addr+uint64(done), b[done:], true)
		if n == 0 {
			return done
		}
		done += n
	}
	return len(b)
}

func (c *Core) read(addr uint64, b []byte, files bool) error {
	if addr+uint64(len(b)) < addr {
		return ErrFault
	}
	for len(b) > 0 {
		n := c.readPiece(addr, b, files)
		if n == 0 {
			return ErrFault
		}
		addr, b = addr+uint64(n), b[n:]
	}
	return nil
}

// readPiece reads the beginning of b, up to the end of one segment or file.
func (c *Core) readPiece(addr uint64, b []byte, files bool) int {
	s, holds := c.segmentAt(addr)
	if holds && addr-s.start < s.have {
		at := addr - s.start
		n := int(min(uint64(len(b)), s.have-at))
		if c.bytes.readAt(0, b[:n], s.offset+at) != nil {
			return 0
		}
		return n
	}
	if !files || c.backing == nil {
		return 0
	}
	if s != nil && !holds && s.start-addr < uint64(len(b)) {
		b = b[:s.start-addr] // the rest is in the core
	} else if holds && s.end-addr < uint64(len(b)) {
		b = b[:s.end-addr]
	}
	lost := false // the bytes were in the missing end of the core: the process may have changed them
	if holds {
		if at := addr - s.start; at < s.want {
			lost = true
			b = b[:min(uint64(len(b)), s.want-at)]
		}
	}
	return c.backing.read(addr, b, lost)
}

// dumped is only the memory in the core itself. Files are compared with it.
type dumped struct{ c *Core }

func (d dumped) Read(addr uint64, b []byte) error { return d.c.read(addr, b, false) }

func (d dumped) ReadMany(rs []Range) {
	for i := range rs {
		rs[i].OK = d.Read(rs[i].Addr, rs[i].Buf) == nil
	}
}

// coreCache keeps blocks of the core file and of other files. Its size is fixed. A walk reads word by word, and without
// a cache, system calls would take most of its time.
type coreCache struct {
	sources []io.ReaderAt
	blocks  [cacheBlocks]cacheBlock
}

const (
	cacheUnit   = 8 << 10
	cacheBlocks = 2048 // 16 MB
)

type cacheBlock struct {
	source int
	number uint64
	have   int // how many bytes the block has; 0: nothing was read
	bytes  []byte
}

func newCoreCache() *coreCache { return &coreCache{} }

// add adds a file, and returns its number.
func (c *coreCache) add(r io.ReaderAt) int {
	c.sources = append(c.sources, r)
	return len(c.sources) - 1
}

// readAt fills b from an offset of a file.
func (c *coreCache) readAt(source int, b []byte, off uint64) error {
	if len(b) >= cacheUnit {
		n, err := c.sources[source].ReadAt(b, int64(off))
		if n == len(b) {
			return nil
		}
		return cmp.Or(err, io.ErrUnexpectedEOF)
	}
	for len(b) > 0 {
		block, err := c.block(source, off/cacheUnit)
		if err != nil {
			return err
		}
		at := int(off % cacheUnit)
		if at >= block.have {
			return io.ErrUnexpectedEOF
		}
		n := copy(b, block.bytes[at:block.have])
		b, off = b[n:], off+uint64(n)
	}
	return nil
}

// block returns a block of a source. If the cache does not have it, block reads it.
func (c *coreCache) block(source int, number uint64) (*cacheBlock, error) {
	k := &c.blocks[(number*31+uint64(source)*977)%cacheBlocks]
	if k.have > 0 && k.source == source && k.number == number {
		return k, nil
	}
	if k.bytes == nil {
		k.bytes = make([]byte, cacheUnit)
	}
	if number > 1<<62/cacheUnit {
		return nil, io.ErrUnexpectedEOF
	}
	k.source, k.number, k.have = source, number, 0
	n, err := c.sources[source].ReadAt(k.bytes, int64(number*cacheUnit))
	if n == 0 || err != nil && !errors.Is(err, io.EOF) {
		return nil, cmp.Or(err, io.ErrUnexpectedEOF)
	}
	k.have = n
	return k, nil
}

// source returns one of the files, read through the cache.
func (c *coreCache) source(i int) io.ReaderAt { return cachedSource{c, i} }

type cachedSource struct {
	c *coreCache
	i int
}

func (s cachedSource) ReadAt(b []byte, off int64) (int, error) {
	if off < 0 {
		return 0, io.ErrUnexpectedEOF
	}
	if err := s.c.readAt(s.i, b, uint64(off)); err != nil {
		return 0, err
	}
	return len(b), nil
}
