package memory

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"goprof/process"
	"goprof/profile"
)

const anonymousRW = process.PermRead | process.PermWrite

func TestCut(t *testing.T) {
	whole, file := process.Mapping{Start: 0x1000, End: 0x9000, Perm: anonymousRW},
		process.Mapping{Start: 0x9000, End: 0xa000, Inode: 7, Path: "/f"}
	mapped := []piece{{start: 0x1000, end: 0x9000, m: &whole}, {start: 0x9000, end: 0xa000, m: &file}}
	for name, c := range map[string]struct {
		claims []claim
		want   string
	}{
		"none":          {nil, "1000-9000 9000-a000"},
		"in the middle": {[]claim{{0x3000, 0x4000, "a", "", false}}, "1000-3000 3000-4000a 4000-9000 9000-a000"},
		"over the end":  {[]claim{{0x8000, 0xb000, "a", "", false}}, "1000-8000 8000-9000a 9000-a000a"},
		"only of no file": {[]claim{{0x8000, 0xb000, "a", "", true}},
			"1000-8000 8000-9000a 9000-a000"},
		"of two that overlap the lower one counts": {[]claim{{0x3000, 0x6000, "b", "", false},
			{0x2000, 0x4000, "a", "", false}}, "1000-2000 2000-4000a 4000-6000b 6000-9000 9000-a000"},
		"one within another": {[]claim{{0x2000, 0x8000, "a", "", false}, {0x3000, 0x4000, "b", "", false}},
			"1000-2000 2000-8000a 8000-9000 9000-a000"},
		"all of it, and more": {[]claim{{0, 1 << 40, "a", "", false}}, "1000-9000a 9000-a000a"},
	} {
		got := ""
		for _, p := range cut(mapped, c.claims) {
			got += fmt.Sprintf(" %x-%x%s", p.start, p.end, p.part)
		}
		if got != " "+c.want {
			t.Errorf("%s:%s, want %s", name, got, c.want)
		}
	}
}

// pageSizes are those that Linux has on aarch64. On x86-64 it has the first one.
var pageSizes = []uint64{4 << 10, 16 << 10, 64 << 10}

// FuzzClaims: for any ranges in the JVM's structures, pieces hold whole pages, and each page is in one piece.
func FuzzClaims(f *testing.F) {
	const start, end = 0x10000, 0x60000
	f.Add(uint64(0x10001), uint64(0x11fff), uint64(0x11800), uint64(0x12345)) // one page, claimed twice
	f.Add(uint64(0x1fff8), uint64(1<<64-1), uint64(0x15000), uint64(0x14001)) // up to the last address; backwards
	f.Fuzz(func(t *testing.T, a, b, c, d uint64) {
		m := process.Mapping{Start: start, End: end, Path: "[heap]", Perm: anonymousRW}
		for _, page := range pageSizes {
			next := uint64(start)
			for _, p := range cut([]piece{{start: start, end: end, m: &m}},
				wholePages([]claim{{a, b, "a", "", false}, {c, d, "b", "", true}}, page)) {
				if p.start != next || p.end <= p.start || p.end%page != 0 {
					t.Fatalf("pages of %d: a piece %#x-%#x, and the one before ends at %#x", page, p.start, p.end, next)
				}
				next = p.end
			}
			if next != end {
				t.Errorf("pages of %d: the pieces end at %#x", page, next)
			}
		}
	})
}

func TestByMapping(t *testing.T) {
	maps := []process.Mapping{
		{Start: 0x1000, End: 0x2000, Inode: 1, Path: "/lib/libz.so", Perm: process.PermRead},
		{Start: 0x2000, End: 0x3000, Inode: 1, Path: "/lib/libz.so", Perm: process.PermExec},
		{Start: 0x3000, End: 0x4000, Perm: anonymousRW}, // the program's variables
		{Start: 0x5000, End: 0x6000, Perm: anonymousRW},
		{Start: 0x6000, End: 0x7000, Inode: 2, Path: "/data/a.db", Perm: anonymousRW},
		{Start: 0x7000, End: 0x8000, Inode: 3, Path: "/memfd:java_heap", Perm: anonymousRW | process.PermShared},
		{Start: 0x8000, End: 0x9000, Path: "[heap]", Perm: anonymousRW},
		{Start: 0x9000, End: 0xa000, Path: "[stack]", Perm: anonymousRW},
		{Start: 0xa000, End: 0xb000, Inode: 4, Path: "/jdk/classes.jsa", Perm: anonymousRW},
	}
	var pieces []piece
	for i := range maps {
		pieces = append(pieces, piece{start: maps[i].Start, end: maps[i].End, m: &maps[i]})
	}
	byMapping(pieces)
	var got []string
	for _, p := range pieces {
		got = append(got, p.part)
	}
	want := []string{"libraries", "libraries", "libraries", "", "files", "heap", "malloc", "stacks", "class-archive"}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestPartsAddUp: the parts add up to all pieces.
func TestPartsAddUp(t *testing.T) {
	m := process.Mapping{Perm: anonymousRW}
	var pieces []counted
	for i, part := range []string{"heap", "", "files", "files", "files", "heap"} {
		start := uint64(i+1) * 0x1000
		pieces = append(pieces, counted{piece{start, start + 0x1000, &m, part, ""}, pageCount{uint64(1000 + i), 1, 2}})
	}
	pieces[2].name, pieces[3].name, pieces[4].name = "a", "b", "a"
	parts := partsOf(pieces)
	sum, swap := uint64(0), uint64(0)
	for _, p := range parts {
		sum, swap = sum+p.Resident, swap+p.Swapped
	}
	if sum != 6015 || swap != 12 || len(parts) != 3 || parts[0].Name != "files" || parts[0].Count != 2 ||
		parts[1].Count != 2 || parts[2].Name != profile.UnnamedMemory {
		t.Errorf("%d, %d: %+v", sum, swap, parts)
	}
	if got := parts[0].Pieces; len(got) != 2 || got[0].Name != "a" || got[0].Resident != 2006 {
		t.Errorf("%+v", got)
	}
}

// arena returns the memory of an arena. Its chunks begin at offset first. chunks has their sizes, negative for free
// chunks. The last chunk is the top.
func arena(first int, chunks ...int) []byte {
	b := make([]byte, first)
	before := uint64(inUseBefore)
	for _, n := range chunks {
		used := uint64(inUseBefore)
		if n < 0 {
			n, used = -n, 0
		}
		chunk := make([]byte, n)
		binary.LittleEndian.PutUint64(chunk[8:], uint64(n)|before|4) // 4: NON_MAIN_ARENA
		b, before = append(b, chunk...), used
	}
	return b
}

func TestFreeIn(t *testing.T) {
	all := func(int) bool { return true }
	for name, c := range map[string]struct {
		b            []byte
		in           func(int) bool
		free, looked int
	}{
		"free chunks and the top": {arena(0x30, 64, -4096, 128, -64, 32, 8192), all, 4080 + 48 + 8176, 12576},
		"all in use":              {arena(0, 64, 64, 32), all, 16, 160},
		"no arena":                {make([]byte, 8192), all, 0, 0},
	} {
		if free, looked := freeIn(c.b, 4096, c.in); free != c.free || looked != c.looked {
			t.Errorf("%s: %d of %d free, want %d of %d", name, free, looked, c.free, c.looked)
		}
	}
	for _, page := range pageSizes { // three free pages, of which the kernel has taken back the second
		n := int(page)
		b, want := arena(0, n, -3*n, n), 3*n-32
		if free, looked := freeIn(b, n, func(p int) bool { return p != 2 }); free != want || looked != 5*n {
			t.Errorf("pages of %d: %d of %d free, want %d of %d", n, free, looked, want, 5*n)
		}
	}
	broken := arena(0, 64, -64, 96, 4096)[:4000]
	binary.LittleEndian.PutUint64(broken[128+8:], 1<<40)
	if free, looked := freeIn(broken, 4096, all); looked > 128 || free > 64 {
		t.Errorf("a broken chain: %d of %d", free, looked)
	}
}

// FuzzFreeIn: for any bytes of an arena, the free bytes are at most the searched bytes, which are at most all bytes of
// the arena.
func FuzzFreeIn(f *testing.F) {
	f.Add(arena(0x30, 64, -4096, 128, -64, 32, 8192))
	f.Fuzz(func(t *testing.T, b []byte) {
		free, looked := freeIn(b, 4096, func(int) bool { return true })
		if free < 0 || free > looked || looked > len(b) {
			t.Errorf("%d of %d of %d", free, looked, len(b))
		}
	})
}

// space is a test's memory: the words by address. All other words are zero.
type space map[uint64]uint64

func (s space) Read(addr uint64, b []byte) error {
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], s[addr+uint64(i)])
	}
	return nil
}

func (s space) ReadMany([]process.Range) { panic("not asked for") }

func TestArenaHeaps(t *testing.T) {
	const at = 0x7f0004000000
	m := process.Mapping{Start: at - 0x1000, End: at + 3*arenaHeap, Perm: anonymousRW}
	pieces := []piece{{start: m.Start, end: m.End, m: &m}}
	memory := space{at: at + 0x30, at + 16: 0x21000, at + 24: 0x22000, // the first heap of an arena
		at + arenaHeap: at + 0x30, at + arenaHeap + 8: at, at + arenaHeap + 16: 0x1000, at + arenaHeap + 24: 0x1000,
		at + 2*arenaHeap: 5} // not a heap
	all := func(uint64) bool { return true }
	heaps, arenas := arenaHeaps(memory, pieces, all)
	if arenas != 1 || len(heaps) != 2 || heaps[0].start != at || heaps[0].end != at+0x22000 ||
		heaps[1].end != at+arenaHeap+0x1000 {
		t.Errorf("%d arenas: %+v", arenas, heaps)
	}
	memory[at+24] = 1 << 40 // larger than a heap can be
	if heaps, _ := arenaHeaps(memory, pieces, all); len(heaps) != 1 {
		t.Errorf("a heap that lies: %+v", heaps)
	}
	if heaps, _ := arenaHeaps(memory, pieces, func(uint64) bool { return false }); len(heaps) != 0 {
		t.Errorf("a page that is not in memory was read: %+v", heaps)
	}
}

func TestOtherMalloc(t *testing.T) {
	for want, files := range map[string][]string{
		"":         {"/lib/x86_64-linux-gnu/libc.so.6", "/jdk/lib/server/libjvm.so", "[heap]"},
		"musl":     {"/lib/ld-musl-x86_64.so.1", "/jdk/lib/server/libjvm.so"},
		"jemalloc": {"/usr/lib/libjemalloc.so.2", "/lib/ld-musl-x86_64.so.1"},
		"tcmalloc": {"/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/libtcmalloc_minimal.so.4"},
	} {
		var maps []process.Mapping
		for i, file := range files {
			maps = append(maps, process.Mapping{Path: file, Inode: uint64(i + 1)})
		}
		if got := otherMalloc(maps); got != want {
			t.Errorf("%v: %q, want %q", files, got, want)
		}
	}
}

func TestMappedPieces(t *testing.T) {
	const at = 0x7f0000000000
	m := process.Mapping{Start: at, End: at + 0x90000, Perm: anonymousRW}
	memory := space{at + 8: 0x20000 | mappedChunk, at + 0x20000 + 8: 0x2fff0 | mappedChunk, // as in glibc from about 2.42
		at + 0x50000 + 8: 0x70000 | mappedChunk}
	got := mappedPieces(memory, []piece{{start: at, end: m.End, m: &m}}, func(uint64) bool { return true })
	if len(got) != 2 || got[1].start != at+0x20000 || got[1].end != at+0x50000 { // the third is longer than its mapping
		t.Errorf("%+v", got)
	}
}

func TestGrowth(t *testing.T) {
	began := time.Unix(1_700_000_000, 0)
	cache := uint64(100 << 20)
	readings := func(malloc, heap, group []uint64) (list []*profile.Memory) {
		for i := range malloc {
			list = append(list, &profile.Memory{At: began.Add(time.Duration(10*i) * time.Second),
				Resident: (malloc[i] + heap[i]) << 20,
				Parts: []profile.MemoryPart{{Name: "heap", Resident: heap[i] << 20},
					{Name: "malloc", Resident: malloc[i] << 20}},
				Direct: &profile.DirectMemory{Reserved: malloc[i] << 19},
				Group: &profile.GroupMemory{Used: group[i] << 20, Cache: &cache, Max: 1000 << 20,
					Left: (1100 - group[i]) << 20}})
		}
		return list
	}
	flat := []uint64{300, 301, 299, 300, 301, 300}
	up := []uint64{100, 120, 141, 160, 179, 200}
	g := Growth(readings(up, flat, []uint64{500, 520, 541, 560, 579, 600}))
	if len(g.Parts) != 1 || g.Parts[0].Name != "malloc" || g.Parts[0].From != 100<<20 || g.Parts[0].To != 200<<20 {
		t.Errorf("%+v", g)
	}
	if rate := g.Parts[0].Bytes.Rate / (1 << 20); rate < 1.9 || rate > 2.1 {
		t.Errorf("%v MiB a second", rate)
	}
	if g.Direct == nil || g.Direct.To != 100<<20 {
		t.Errorf("direct buffers: %+v", g.Direct)
	}
	if g.Full < 230*time.Second || g.Full > 270*time.Second { // 500 MiB at 2 MiB a second
		t.Errorf("full in %v", g.Full)
	}
	for name, list := range map[string][]*profile.Memory{
		"nothing grows": readings(flat, flat, flat),
		"one step":      readings([]uint64{100, 100, 100, 200, 200, 200}, flat, flat),
		"up and down": readings([]uint64{100, 200, 90, 210, 80, 220}, flat,
			[]uint64{500, 600, 490, 610, 480, 620}),
		"too little to be a trend": readings([]uint64{100, 100, 100, 100, 100, 101}, flat, flat),
	} {
		if g := Growth(list); len(g.Parts) != 0 || g.Full != 0 {
			t.Errorf("%s: %+v", name, g)
		}
	}
	list := readings(up, flat, []uint64{500, 520, 541, 560, 579, 600})
	if list[3].Group.Cache = nil; Growth(list).Full != 0 {
		t.Error("how much of the group is a cache of files is not known, and when it is full is told")
	}
	if Growth(readings(up[:2], flat, up)) != nil {
		t.Error("two readings show growth")
	}
}
