//go:build linux

package vitals

import (
	"encoding/binary"
	"os"

	"goprof/process/maybe"
)

const (
	// maxHeapPages bounds how many pages of a heap are looked up: 32 GB of small ones.
	maxHeapPages = 8 << 20
	// pagesAtOnce is how many are read at a time. The kernel holds the lock of the address space for 2 MB of it at a
	// time (fs/proc/task_mmu.c, pagemap_read).
	pagesAtOnce = 1 << 15
	// present says that a page is in memory (Documentation/admin-guide/mm/pagemap.rst).
	present = 1 << 63
)

// ReadHeap fills in how much of the heap is in memory. The kernel says it page by page: 8 bytes for each, some
// milliseconds for a gigabyte.
func (v *Vitals) ReadHeap(r *Reading) {
	if r.JVM.GC.Name == "ZGC" {
		// Its heap is shared memory (ZPhysicalMemoryBacking, memfd_create), so none of it is anonymous.
		r.Process.Heap = maybe.Known(uint64(0))
		return
	}
	page := uint64(os.Getpagesize())
	pages := (v.heap[1] - v.heap[0]) / page
	if pages == 0 || pages > maxHeapPages {
		return
	}
	file, err := os.Open(v.file("pagemap"))
	if err != nil {
		return
	}
	defer file.Close()
	buf := make([]byte, 8*min(pages, pagesAtOnce))
	in := uint64(0)
	for at := uint64(0); at < pages; {
		part := buf[:8*min(pages-at, pagesAtOnce)]
		if _, err := file.ReadAt(part, int64(8*(v.heap[0]/page+at))); err != nil {
			return
		}
		for i := 0; i < len(part); i += 8 {
			in += binary.NativeEndian.Uint64(part[i:]) / present
		}
		at += uint64(len(part) / 8)
	}
	r.Process.Heap = maybe.Known(in * page)
}
