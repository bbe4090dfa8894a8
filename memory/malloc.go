package memory

import (
	"encoding/binary"
	"path"
	"strings"

	"goprof/process"
	"goprof/profile"
)

// glibc's malloc (malloc/arena.c, malloc.c). The main arena grows the mapping [heap]. Each other arena has aligned
// heaps of 64 MB. A heap begins with a heap_info: the arena, the previous heap, the bytes in use, and the writable
// bytes. A large piece has a mapping of its own, which begins with its size.
const (
	arenaHeap   = 64 << 20 // HEAP_MAX_SIZE on 64 bits
	heapInfo    = 32       // the bytes of a heap_info that are read
	chunkHead   = 16
	leastChunk  = 32 // MINSIZE
	chunkFlags  = 7
	mappedChunk = 2 // IS_MMAPPED
	inUseBefore = 1 // PREV_INUSE
	// leastMapped is half of the smallest size for which malloc makes a mapping by default.
	leastMapped = 64 << 10
	// maxHeapsTried bounds the addresses that are checked for a heap of an arena. maxMapped bounds the pieces that have a
	// mapping of their own.
	maxHeapsTried, maxMapped = 1 << 16, 1 << 17
	// firstChunk is the largest distance from the beginning of a heap to its first chunk, which follows heap_info and
	// malloc_state.
	firstChunk = 0x940
	// maxLooked bounds the bytes of arenas that are copied, and maxArena the bytes of one copy. goprof itself may be in a
	// small control group.
	maxLooked, maxArena = 1 << 30, 64 << 20
)

func word(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// isAnonymous reports whether malloc may have mapped the piece: the piece has no known purpose, and is anonymous and
// writable.
func (p *piece) isAnonymous() bool {
	return p.part == "" && p.m.Inode == 0 && p.m.Path == "" && p.m.Perm&process.PermWrite != 0
}

// otherMallocs has the mallocs other than glibc's, by the beginning of a file name. musl's malloc is in musl's libc,
// which is also its loader.
var otherMallocs = [][2]string{{"ld-musl", "musl"}, {"libc.musl", "musl"}, {"libjemalloc", "jemalloc"},
	{"libtcmalloc", "tcmalloc"}, {"libmimalloc", "mimalloc"}}

// otherMalloc returns the name of the malloc that replaces glibc's, empty if goprof knows of none.
func otherMalloc(mappings []process.Mapping) (name string) {
	for i := range mappings {
		base := path.Base(mappings[i].Path)
		for _, other := range otherMallocs {
			if mappings[i].Inode != 0 && strings.HasPrefix(base, other[0]) && (name == "" || name == "musl") {
				name = other[1] // a malloc that is mapped beside musl replaces musl's
			}
		}
	}
	return name
}

// arenaHeaps finds the heaps of arenas, and counts the arenas.
func arenaHeaps(memory process.Memory, pieces []piece, in func(addr uint64) bool) (heaps []claim, arenas int) {
	tried := 0
	var b [heapInfo]byte
	for i := range pieces {
		p := &pieces[i]
		if !p.isAnonymous() {
			continue
		}
		for at := (p.start + arenaHeap - 1) &^ (arenaHeap - 1); at < p.end && tried < maxHeapsTried; at += arenaHeap {
			tried++
			if !in(at) || memory.Read(at, b[:]) != nil {
				continue
			}
			arena, before, size, writable := word(b[:]), word(b[8:]), word(b[16:]), word(b[24:])
			inside := arena % arenaHeap
			if arena == 0 || arena%8 != 0 || inside < heapInfo || inside > 4*heapInfo || before%arenaHeap != 0 ||
				size == 0 || size > writable || writable > arenaHeap || size%4096 != 0 || writable%4096 != 0 ||
				(before == 0) != (arena-inside == at) {
				continue
			}
			heaps = append(heaps, claim{at, at + writable, profile.MallocMemoryPart, threadArena, true})
			if before == 0 {
				arenas++
			}
		}
	}
	return heaps, arenas
}

// mappedPieces finds malloc's pieces that have a mapping of their own. The kernel joins adjacent mappings, so a mapping
// may hold several pieces.
func mappedPieces(memory process.Memory, pieces []piece, in func(addr uint64) bool) (found []claim) {
	var b [chunkHead]byte
	for i := range pieces {
		p := &pieces[i]
		if !p.isAnonymous() {
			continue
		}
		for at := p.start; at+leastMapped <= p.end && len(found) < maxMapped; {
			if !in(at) || memory.Read(at, b[:]) != nil {
				break
			}
			head := word(b[8:])
			size := (head&^chunkFlags + chunkHead) &^ 4095 // the newest glibc does not count the chunk's own head
			if word(b[:]) != 0 || head&chunkFlags != mappedChunk || size < leastMapped || size > p.end-at ||
				head&^chunkFlags != size && head&^chunkFlags != size-chunkHead {
				break
			}
			found = append(found, claim{at, at + size, profile.MallocMemoryPart, mappedPiece, true})
			at += size
		}
	}
	return found
}

// freeIn adds up the bytes of a heap that are in free chunks and in memory. b is a copy of the heap, with zeros for
// pages that are not in memory. in reports whether a page is in memory. looked is the number of bytes that were
// searched. The search ends early where the chain of chunks is broken, because the program ran during the copy.
//
// The header of the next chunk shows whether a chunk is free. Chunks that malloc keeps for a thread, or in lists of
// small sizes, count as in use.
func freeIn(b []byte, page int, in func(n int) bool) (free, looked int) {
	for first := 0; first <= firstChunk && first+chunkHead <= len(b); first += chunkHead {
		if f, l := freeFrom(b, first, page, in); l > looked {
			free, looked = f, l
		}
		if first+looked == len(b) {
			break
		}
	}
	return free, looked
}

func freeFrom(b []byte, first, page int, in func(n int) bool) (free, looked int) {
	resident := func(from, to int) (n int) {
		for from < to {
			end := min((from/page+1)*page, to)
			if in(from / page) {
				n += end - from
			}
			from = end
		}
		return n
	}
	chunks := 0
	for at := first; ; chunks++ {
		if at+chunkHead > len(b) {
			return free, at - first
		}
		size := int(word(b[at+8:]) &^ chunkFlags)
		switch {
		case size == len(b)-at: // the top
			return free + resident(at+chunkHead, len(b)), len(b) - first
		case size <= chunkHead && len(b)-at <= page && chunks > 0: // the fence at the end of a full heap
			return free, len(b) - first
		case size < leastChunk || size%chunkHead != 0 || size > len(b)-at-chunkHead:
			return free, at - first
		}
		if word(b[at+size+8:])&inUseBefore == 0 {
			free += resident(at+chunkHead, at+size)
		}
		at += size
	}
}
