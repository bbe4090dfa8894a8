package vmstructs

// A walk that begins in the middle of an area, or continues after an object that could not be read, must find the
// beginning of an object. It looks for an address from which several objects follow each other.

const (
	// chainLength is the number of objects that must follow each other. Data that looks like a header is rare, and such
	// data rarely leads to seven more headers.
	chainLength = 8
	findHead    = 512 // bytes that are read of an object that was not copied
	maxAsked    = 64  // new classes that one search reads, each with several calls
	askStop     = 64  // the number of chains between two checks of stop, because each may take several calls
	// addressBits is the size of a program's addresses: 47 bits on x86-64, 48 on aarch64 (Documentation/arch/arm64/
	// memory.rst).
	addressBits = 48
)

// find returns the first offset in b, a copy of the memory at addr, from which objects follow each other, up to limit.
// It returns len(b) if there is none, or if stop returns true.
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

// startsHere reports whether b may be the beginning of an object that no thread has locked (oops/markWord.hpp).
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

// markMakesSense reports whether a word may be a mark word: a hash code and an age, or an address.
func (h *Heap) markMakesSense(mark uint64) bool {
	if h.klasses.compact {
		return mark != 0
	}
	return mark != 0 && (mark&3 != 3 || h.klasses.inPlace) && mark>>addressBits == 0
}

// follow reports whether objects follow each other from an offset in b: chainLength objects, or up to the limit.
func (h *Heap) follow(addr uint64, b []byte, at int, limit uint64) bool {
	pos := addr + uint64(at)
	for range chainLength {
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

// headAt returns the beginning of an object, from b or from memory.
func (h *Heap) headAt(pos, addr uint64, b []byte, limit uint64) ([]byte, bool) {
	if pos-addr+findHead <= uint64(len(b)) {
		return b[pos-addr:], true
	}
	head := h.head[:min(findHead, limit-pos)]
	if len(head) < klassBytes && len(head) < h.Objects.head || h.vm.mem.Bytes(pos, head) != nil {
		return nil, false
	}
	if len(head) < klassBytes { // the last object of the heap, with a compact header
		copy(h.head[len(head):klassBytes], make([]byte, klassBytes))
		head = h.head[:klassBytes]
	}
	return head, true
}
