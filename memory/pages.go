package memory

import (
	"encoding/binary"
	"io"
)

const (
	// pagesAtOnce is the number of page entries that one call reads. The kernel takes the lock of the address space again
	// for each 2 MB, or for each 512 MB if pages have 64 KB (fs/proc/task_mmu.c, pagemap_read).
	pagesAtOnce = 1 << 15
	// maxPages bounds the pages that are looked up: 256 GB of 4 KB pages.
	maxPages = 1 << 26
	// Bits of a page's entry (Documentation/admin-guide/mm/pagemap.rst).
	present = 1 << 63
	swapped = 1 << 62
	ofFile  = 1 << 61 // or of shared memory
)

// pageCount is the numbers of bytes of a range that are in memory or swapped.
type pageCount struct{ resident, anonymous, swapped uint64 }

// pages reads in /proc/PID/pagemap which pages are in memory.
type pages struct {
	file   io.ReaderAt
	size   uint64 // of a page
	buf    []byte
	looked int
}

// each calls f for each page of a range.
func (p *pages) each(start, end uint64, f func(addr, entry uint64)) error {
	if p.buf == nil {
		p.buf = make([]byte, 8*pagesAtOnce)
	}
	for at := start &^ (p.size - 1); at < end; {
		n := min((end-at+p.size-1)/p.size, pagesAtOnce)
		got, err := p.file.ReadAt(p.buf[:8*n], int64(8*(at/p.size)))
		if got < 8 {
			return err
		}
		for i := 0; i+8 <= got; i += 8 {
			f(at, binary.NativeEndian.Uint64(p.buf[i:]))
			at += p.size
		}
		p.looked += got / 8
	}
	return nil
}

func (c *pageCount) add(entry, size uint64) {
	switch {
	case entry&present != 0:
		c.resident += size
		if entry&ofFile == 0 {
			c.anonymous += size
		}
	case entry&swapped != 0:
		c.swapped += size
	}
}
