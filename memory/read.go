//go:build linux

package memory

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"goprof/process"
	"goprof/process/procfs"
	"goprof/profile"
	"goprof/vmstructs"
)

// Reader finds out what the memory of a JVM is for. It must not be used by two goroutines at once.
type Reader struct {
	p      *process.Process
	health *vmstructs.Health
	mounts []procfs.CgroupMount
	arena  []byte // a copy of the last arena that was searched
}

const (
	// maxMounts bounds the bytes of the list of mounts. maxThreads bounds the threads whose stack pointers are read.
	maxMounts, maxThreads = 4 << 20, 1 << 15
	// maxHidden is the largest mapping without access rights whose pages are looked up.
	maxHidden = 16 << 20
	// rollupBelow is the largest RSS with which goprof reads smaps_rollup, which shows the huge pages. The kernel holds
	// the lock of the address space during the read, for about 40 ms a gigabyte.
	rollupBelow = 1 << 30
)

func NewReader(p *process.Process, vm *vmstructs.VM) *Reader {
	b, _ := procfs.Read("/proc/self/mountinfo", maxMounts)
	return &Reader{p: p, health: vm.NewHealth(), mounts: procfs.CgroupMounts(b)}
}

type reading struct {
	*Reader
	pages  pages
	pieces []piece
	stacks int // the number of stacks
	m      *profile.Memory
}

// Read makes one reading. It returns an error if the process has ended, or if goprof may not read its pagemap. With
// arenas, Read also finds out how much of malloc's arenas is free, which is the most expensive part.
func (r *Reader) Read(arenas bool) (*profile.Memory, error) {
	x := &reading{Reader: r, m: &profile.Memory{At: time.Now(), PID: r.p.PID(), Collector: r.health.Collector()}}
	if err := r.p.Refresh(); err != nil {
		return nil, err
	}
	file, err := os.Open(r.file("pagemap"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	x.pages = pages{file: file, size: uint64(os.Getpagesize())}
	mappings := r.p.Mappings()
	for i := range mappings {
		x.pieces = append(x.pieces, piece{start: mappings[i].Start, end: mappings[i].End, m: &mappings[i]})
	}
	x.own()
	counts, err := x.count()
	if err != nil {
		return nil, err
	}
	x.m.Parts = partsOf(counts)
	for i := range x.m.Parts {
		x.m.Resident += x.m.Parts[i].Resident
		x.m.Swapped += x.m.Parts[i].Swapped
	}
	x.uses()
	x.malloc(counts, arenas)
	x.m.Group = x.group(x.file("cgroup"))
	x.m.Took = time.Since(x.m.At)
	return x.m, r.p.Alive()
}

func (r *Reader) file(name string) string { return fmt.Sprintf("/proc/%d/%s", r.p.PID(), name) }

// parts names the uses that the JVM's structures show.
var parts = map[vmstructs.MemoryUse]string{
	vmstructs.HeapMemory: profile.HeapPartOfMemory, vmstructs.CodeMemory: profile.CodeCache,
	vmstructs.StackMemory: profile.ThreadStacks, vmstructs.CollectorMemory: profile.CollectorTables,
	vmstructs.ArchiveMemory: profile.ClassArchive, vmstructs.ClassSpaceMemory: profile.ClassSpace,
	vmstructs.MetaspaceMemory: profile.Metaspace,
}

// own finds the purpose of each piece of the address space.
func (x *reading) own() {
	var exact, rough []claim
	for _, r := range x.health.MemoryRanges() {
		if r.Use == vmstructs.StackMemory {
			x.stacks++
		}
		c := claim{r.Start, r.End, parts[r.Use], r.Name, r.Rough}
		if r.Rough {
			rough = append(rough, c)
		} else {
			exact = append(exact, c)
		}
	}
	x.claim(exact)
	heaps, arenas := arenaHeaps(x.p, x.pieces, x.in)
	x.m.Malloc.Arenas = arenas
	x.claim(heaps)
	x.claim(x.nativeStacks())
	x.claim(rough)
	byMapping(x.pieces)
	x.claim(mappedPieces(x.p, x.pieces, x.in))
}

func (x *reading) claim(claims []claim) { x.pieces = cut(x.pieces, wholePages(claims, x.pages.size)) }

// in reports whether the page of an address is in memory. goprof reads no other page, because reading would bring the
// page into memory.
func (x *reading) in(addr uint64) (in bool) {
	x.pages.each(addr, addr+1, func(_, entry uint64) { in = entry&present != 0 })
	return in
}

// nativeStacks finds the stacks of the JVM's internal threads, which no structure lists. The kernel shows the stack
// pointer of a waiting thread. The stack is the mapping around that address, up to the size of an internal thread's
// stack.
func (x *reading) nativeStacks() (stacks []claim) {
	size := uint64(1 << 20)
	if f, ok := x.health.Flag("VMThreadStackSize"); ok && f.Int|int64(f.Uint) > 0 {
		size = uint64(f.Int)<<10 | f.Uint<<10
	}
	dir := procfs.OpenDir(x.p.PID())
	defer dir.Close()
	var tids []int
	dir.Threads(func(tid int) {
		if len(tids) < maxThreads {
			tids = append(tids, tid)
		}
	})
	for _, tid := range tids {
		_, _, sp, _, ok := procfs.ParseSyscall(dir.Read(tid, "syscall"))
		if !ok {
			continue
		}
		i, found := slices.BinarySearchFunc(x.pieces, sp, func(p piece, sp uint64) int {
			if sp >= p.end {
				return -1
			}
			return cmp.Compare(p.start, min(p.start, sp))
		})
		if found && x.pieces[i].isAnonymous() {
			p := &x.pieces[i]
			x.stacks++
			stacks = append(stacks, claim{p.start, min(p.end, p.start+size), profile.ThreadStacks, "", true})
		}
	}
	return stacks
}

// count counts the pages of each piece. If a process has too many pages to look up, its largest piece gets the
// remaining bytes of the kernel's RSS.
func (x *reading) count() (counts []counted, err error) {
	seen := map[uint64]map[uint64]uint64{} // pages of files of the heap: by inode, 64 offsets each
	large, all := -1, uint64(0)
	for i := range x.pieces {
		p := &x.pieces[i]
		c := counted{piece: *p}
		hidden := p.m.Perm&(process.PermRead|process.PermWrite|process.PermExec) == 0
		switch {
		case hidden && p.end-p.start > maxHidden || strings.HasPrefix(p.m.Path, "[vsyscall"):
		case uint64(x.pages.looked)+(p.end-p.start)/x.pages.size > maxPages:
			if large < 0 || p.end-p.start > x.pieces[large].end-x.pieces[large].start {
				large = i
			}
		default:
			once := func(uint64, uint64) {}
			if p.part == profile.HeapPartOfMemory && p.m.Inode != 0 {
				if seen[p.m.Inode] == nil {
					seen[p.m.Inode] = map[uint64]uint64{}
				}
				once = x.once(p.m, seen[p.m.Inode])
			}
			err = x.pages.each(p.start, p.end, func(addr, entry uint64) {
				c.add(entry, x.pages.size)
				once(addr, entry)
			})
		}
		if err != nil && x.pages.looked == 0 {
			return nil, cmp.Or(x.p.Alive(), err)
		}
		all += c.resident
		counts = append(counts, c)
	}
	x.kernel()
	if large >= 0 && x.m.Kernel.RSS > all {
		counts[large].resident = x.m.Kernel.RSS - all
		x.note("it is too large to look at each page: the largest mapping has what the kernel counts beyond the others")
	}
	if x.m.Twice > 0 {
		x.note("this collector has its heap at several addresses: RSS counts such a page once for each, the control " +
			"group once")
	}
	return counts, nil
}

// once returns a function that counts pages that are mapped at several addresses (Memory.Twice).
func (x *reading) once(m *process.Mapping, seen map[uint64]uint64) func(addr, entry uint64) {
	return func(addr, entry uint64) {
		at := (m.Offset + addr - m.Start) / x.pages.size
		switch {
		case entry&present == 0:
		case seen[at/64]>>(at%64)&1 != 0:
			x.m.Twice += x.pages.size
		default:
			seen[at/64] |= 1 << (at % 64)
		}
	}
}

func (x *reading) note(text string) { x.m.Notes = append(x.m.Notes, text) }

// kernel reads the kernel's own counts for the process.
func (x *reading) kernel() {
	dir := procfs.OpenDir(x.p.PID())
	defer dir.Close()
	status := dir.Read(dir.AnyThread(), "status") // the first thread may have ended before the others
	k := &x.m.Kernel
	for _, f := range []struct {
		to  *uint64
		key string
	}{{&k.RSS, "VmRSS"}, {&k.Anonymous, "RssAnon"}, {&k.File, "RssFile"}, {&k.Shared, "RssShmem"}, {&k.Swap, "VmSwap"},
		{&k.PageTables, "VmPTE"}} {
		*f.to, _ = procfs.Kilobytes(status, f.key)
	}
	mode, _ := procfs.Read("/sys/kernel/mm/transparent_hugepage/enabled", procfs.MaxFile)
	always := strings.Contains(string(mode), "[always]")
	if asked, _ := x.health.Flag("UseTransparentHugePages"); !always && !asked.Bool {
		return // the kernel makes no huge pages, or only on request
	}
	if k.RSS > rollupBelow {
		x.note("transparent huge pages are on: stacks and arenas may be in memory in steps of such a page")
		return
	}
	rollup, _ := procfs.Read(x.file("smaps_rollup"), procfs.MaxFile)
	if n, ok := procfs.Kilobytes(rollup, "AnonHugePages"); ok {
		k.HugePages = &n
	}
}

// uses sets the used bytes of the parts, by the JVM's own counters.
func (x *reading) uses() {
	set := func(part string, used uint64) {
		if p := x.m.Part(part); p != nil {
			p.Used = used
		}
	}
	set(profile.HeapPartOfMemory, x.health.Heap().Heap.Used.Or(0))
	code := uint64(0)
	for _, c := range x.health.Code() {
		code += c.Used.Or(0)
	}
	set(profile.CodeCache, code)
	if counters, ok := x.health.Counters(); ok {
		all, _ := counters.Long("sun.gc.metaspace.used") // includes the class space
		class, _ := counters.Long("sun.gc.compressedclassspace.used")
		set(profile.ClassSpace, uint64(max(class, 0)))
		set(profile.Metaspace, uint64(max(all-class, 0)))
	}
	if p := x.m.Part(profile.ThreadStacks); p != nil {
		p.Count = x.stacks
	}
	if d, ok := x.health.DirectMemory(); ok {
		x.m.Direct = &profile.DirectMemory{Reserved: d.Reserved, Capacity: d.Capacity, Count: d.Count, Max: d.Max.Or(0)}
	}
}

// malloc adds up malloc's pieces. With look, it also finds out how much of the arenas is free.
func (x *reading) malloc(counts []counted, look bool) {
	m := &x.m.Malloc
	m.Other = otherMalloc(x.p.Mappings())
	var arenas []*counted
	for i := range counts {
		c := &counts[i]
		switch {
		case c.part != profile.MallocMemoryPart:
		case c.name == mappedPiece:
			m.Mapped += c.resident
			m.Pieces++
		default:
			m.InUse += c.resident
			arenas = append(arenas, c)
		}
	}
	if look && m.Other == "" {
		x.lookThrough(arenas)
	}
}

// lookThrough searches arenas for free chunks, as many as the bounds allow.
func (x *reading) lookThrough(arenas []*counted) {
	m, left, most := &x.m.Malloc, uint64(maxLooked), x.mostAtOnce()
	tooLarge, largest := uint64(0), uint64(0)
	arenas = slices.DeleteFunc(arenas, func(c *counted) bool {
		switch size := c.end - c.start; {
		case c.swapped > 0:
			return true
		case size > most || size > left:
			tooLarge += c.resident
			return true
		default:
			left, largest = left-size, max(largest, size)
			return false
		}
	})
	if uint64(cap(x.arena)) < largest {
		x.arena = nil // lets the old copy be collected before a larger one is allocated
		x.arena = make([]byte, largest)
	}
	for _, c := range arenas {
		x.lookAt(c)
	}
	if tooLarge > 0 {
		x.note(fmt.Sprintf("%d MiB of malloc's arenas were not looked through, and what is free in them is not known: "+
			"goprof copies arenas of %d MiB at most here, and %d MiB of all", tooLarge>>20, most>>20, maxLooked>>20))
	} else if m.Looked < m.InUse/2 {
		x.note("most arenas of malloc could not be looked through: what is free in them is not known")
	}
}

// mostAtOnce is the largest arena that goprof copies: at most half of the memory that goprof's own control group has
// left.
func (x *reading) mostAtOnce() uint64 {
	own := x.group("/proc/self/cgroup")
	if own == nil || own.Max == 0 {
		return maxArena
	}
	return min(maxArena, own.Left/2)
}

// lookAt searches one heap of an arena. It reads only pages that are in memory.
func (x *reading) lookAt(c *counted) {
	page := int(x.pages.size)
	b := x.arena[:c.end-c.start]
	in := make([]bool, len(b)/page+1)
	if x.pages.each(c.start, c.end, func(addr, entry uint64) {
		in[(addr-c.start)/x.pages.size] = entry&present != 0
	}) != nil {
		return
	}
	for from := 0; from < len(b); {
		to := from
		for to < len(b) && in[to/page] == in[from/page] {
			to = min(to+page, len(b))
		}
		if !in[from/page] {
			clear(b[from:to])
		} else if x.p.Read(c.start+uint64(from), b[from:to]) != nil {
			return
		}
		from = to
	}
	if c.name == threadArena && c.start%arenaHeap == 0 {
		b = b[:min(uint64(len(b)), word(b[16:]))]
	}
	free, looked := freeIn(b, page, func(n int) bool { return in[n] })
	x.m.Malloc.Free += uint64(free)
	for n := range looked / page {
		if in[n] {
			x.m.Malloc.Looked += x.pages.size
		}
	}
}

// group reads the memory of the control group that file (/proc/PID/cgroup) names. It returns nil if that fails.
func (x *reading) group(file string) *profile.GroupMemory {
	b, _ := procfs.Read(file, procfs.MaxFile)
	g, ok := procfs.GroupOf(procfs.Memberships(b), x.mounts, "memory")
	if !ok {
		return nil
	}
	memory := g.Memory()
	used, ok := memory.Used.Get()
	if !ok {
		return nil
	}
	group := &profile.GroupMemory{Version: g.Version, Path: g.Path, Used: used, Max: memory.Max.Or(0)}
	if cache, ok := memory.Cache.Get(); ok {
		group.Cache = &cache
		if group.Max > 0 {
			group.Left = group.Max - min(group.Max, used-min(used, cache))
		}
	}
	return group
}
