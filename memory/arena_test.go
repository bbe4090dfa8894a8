//go:build linux

package memory

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"goprof/process"
	"goprof/profile"
)

// TestLookThrough searches arenas of the test process itself. An arena that is larger than the largest copy is not
// searched, and a note says so. The copies of the other arenas share one buffer.
func TestLookThrough(t *testing.T) {
	p, err := process.Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	file, err := os.Open("/proc/self/pagemap")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	page := os.Getpagesize()
	x := &reading{Reader: &Reader{p: p}, pages: pages{file: file, size: uint64(page)}, m: &profile.Memory{}}
	mapped := func(size int) *counted {
		b, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { syscall.Munmap(b) })
		copy(b, arena(0, 64, -2*page, 64, 5*page-128))
		start := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
		return &counted{piece: piece{start: start, end: start + uint64(size)}, pageCount: pageCount{resident: 8 << 20}}
	}
	x.lookThrough([]*counted{mapped(7 * page), mapped(maxArena + page), mapped(7 * page)})
	if m := x.m.Malloc; m.Free != 2*uint64(2*page-16+5*page-128-16) || m.Looked != 2*uint64(7*page) {
		t.Errorf("%+v", m)
	}
	if len(x.m.Notes) != 1 || !strings.Contains(x.m.Notes[0], "8 MiB of malloc's arenas were not looked through") {
		t.Errorf("%q", x.m.Notes)
	}
	if cap(x.arena) != 7*page {
		t.Errorf("a buffer of %d bytes", cap(x.arena))
	}
}
