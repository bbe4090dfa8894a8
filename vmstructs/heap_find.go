package vmstructs

// How goprof finds the beginning of an object. It looks for a place from which several objects follow each other. That
// is necessary if a walk begins in the middle of an area, or goes on behind an object that could not be read: one that
// is not complete yet, or whose class was unloaded.

const (
	// chainLength is how many objects must follow each other from a place. A word of data that looks like a header is
	// rare, and one that leads to seven more headers does not come by chance.
	chainLength = 8
	// findHead is how much is read of an object whose bytes were not copied.
	findHead = 512
	// maxAsked bounds how many classes that are not known yet are asked for in one search: each costs some calls.
	maxAsked = 64
	// askStop is after how many chains find asks whether it must end: each may cost some calls.
	askStop = 64
	// addressBits is how many bits an address of a program has: 47 of x86-64, 48 of aarch64 (Documentation/arch/arm64/
	// memory.rst), where stacks and what is mapped lie in the upper half.
	addressBits = 48
)

// find returns the first place in b, a copy of the memory at addr, where objects begin. limit is where they end: the
// last one must end there. It returns len(b) if there is none, or if stop told it to end.
func (h *Heap) find(addr uint64, b []byte, limit uint64, stop func() bool) int {
	asked, tried := 0, 0
	for at := int(h.after(addr) - addr); at+klassBytes <= len(b); at += int(max(h.align, h.pitch)) {
		if !h.startsHere(b[at:], &asked) {
			continue
		}
		if tried++; tried%askStop == 0 && stop() {
			break
		}
		if h.follow(addr, b, at, limit) {
			return at
		}
	}
	return len(b)
}

// startsHere reports whether an object at rest may begin with b: no thread holds its lock (oops/markWord.hpp).
func (h *Heap) startsHere(b []byte, asked *int) bool {
	if h.chunks.freeChunk(b) > 0 {
		return true
	}
	mark := word(b)
	if mark&3 != 1 && !(mark&3 == 3 && h.klasses.inPlace) || !h.markMakesSense(mark) {
		return false
	}
	klass := h.klasses.klassIn(b)
	if klass == 0 || klass%8 != 0 {
		return false
	}
	if h.classes[klass] == nil {
		if h.wrong[klass] || *asked >= maxAsked {
			return false
		}
		*asked++
	}
	return true
}

// markMakesSense reports whether a mark word may be one: a hash code and an age, or an address.
func (h *Heap) markMakesSense(mark uint64) bool {
	if h.klasses.compact {
		return mark != 0
	}
	return mark != 0 && (mark&3 != 3 || h.klasses.inPlace) && mark>>addressBits == 0
}

// follow reports whether objects follow each other from a place of b on, or end at the limit.
func (h *Heap) follow(addr uint64, b []byte, at int, limit uint64) bool {
	pos := addr + uint64(at)
	for n := 0; n < chainLength; n++ {
		if pos >= limit {
			return pos == limit
		}
		head, ok := h.headAt(pos, addr, b, limit)
		if !ok || !h.markMakesSense(word(head)) {
			return false
		}
		_, size, err := h.object(head)
		if err != nil || size == 0 || size > limit-pos {
			return false
		}
		pos = h.behind(pos, size)
	}
	return true
}

// headAt returns the beginning of an object, out of b or out of memory.
func (h *Heap) headAt(pos, addr uint64, b []byte, limit uint64) ([]byte, bool) {
	if pos-addr+findHead <= uint64(len(b)) {
		return b[pos-addr:], true
	}
	head := h.head[:min(findHead, limit-pos)]
	if len(head) < klassBytes && len(head) < h.Objects.head || h.vm.mem.Bytes(pos, head) != nil {
		return nil, false
	}
	if len(head) < klassBytes { // the last object of all, with a compact header
		copy(h.head[len(head):klassBytes], make([]byte, klassBytes))
		head = h.head[:klassBytes]
	}
	return head, true
}
