package vmstructs

import (
	"slices"
	"sync"

	"goprof/process"
)

// nearMemory reads the target's memory in large pieces, and keeps the pieces until one question is answered. The
// metadata of a class are close together, and a read of 8 bytes takes nearly as long as a read of a piece. But a piece
// may be older than a method that was loaded since. So two kinds of reads bypass the pieces: those that prove facts
// (Proof, holdsTrue), and those of bytecodes, which are cached without a fact. Signatures, the names of source files,
// and the methods called by invokes are not proven.
type nearMemory struct {
	process.Memory
	depth  int // 0: no piece is kept
	n      int // pieces in use
	next   int // the piece that is dropped next
	addr   [nearPieces]uint64
	pieces [nearPieces]*[nearPiece]byte // from nearBuffers; nil after the last one that was needed
	// wanted are the pieces that fetch will read, wantedAt their indexes.
	wanted   []process.Range
	wantedAt []int
}

const (
	nearPiece  = 4096 // at most a page, so that either all of it can be read, or nothing
	nearPieces = 64
)

const maxWanted = nearPieces / 4

// nearBuffers has buffers for VMs that answer a question. They are shared because an agent has hundreds of VMs.
var nearBuffers = sync.Pool{New: func() any { return new([nearPiece]byte) }}

// begin keeps pieces until the matching call of end.
func (m *nearMemory) begin() { m.depth++ }

func (m *nearMemory) end() {
	if m.depth--; m.depth == 0 {
		m.forget()
		m.wanted, m.wantedAt = m.wanted[:0], m.wantedAt[:0]
		for i := 0; i < nearPieces && m.pieces[i] != nil; i++ {
			nearBuffers.Put(m.pieces[i])
			m.pieces[i] = nil
		}
	}
}

func (m *nearMemory) forget() { m.n, m.next = 0, 0 }

func (m *nearMemory) Read(addr uint64, p []byte) error {
	if m.depth == 0 || len(p) > nearPiece || addr+uint64(len(p)) < addr {
		return m.Memory.Read(addr, p)
	}
	for done := 0; done < len(p); {
		at := addr + uint64(done)
		piece := m.piece(at &^ (nearPiece - 1))
		if piece == nil { // a recording or a core file may have less
			return m.Memory.Read(addr, p)
		}
		done += copy(p[done:], piece[at%nearPiece:])
	}
	return nil
}

// piece returns the piece that begins at an address, nil if it cannot be read.
func (m *nearMemory) piece(begin uint64) *[nearPiece]byte {
	for i, addr := range m.addr[:m.n] {
		if addr == begin {
			return m.pieces[i]
		}
	}
	i := m.room()
	if m.Memory.Read(begin, m.pieces[i][:]) != nil {
		return nil
	}
	m.take(i, begin)
	return m.pieces[i]
}

// room returns the index for another piece, and drops the old piece at that index.
func (m *nearMemory) room() int {
	i := m.next
	if m.n < nearPieces {
		i = m.n
	}
	if m.pieces[i] == nil {
		m.pieces[i] = nearBuffers.Get().(*[nearPiece]byte)
	}
	m.addr[i] = 1 // no piece begins there
	return i
}

// take keeps a piece that was read to the index from room.
func (m *nearMemory) take(i int, begin uint64) {
	if m.n < nearPieces {
		m.n++
	} else {
		m.next = (m.next + 1) % nearPieces
	}
	m.addr[i] = begin
}

// want makes the next fetch read the piece around an address. It ignores address 0.
func (m *nearMemory) want(addr uint64) {
	begin := addr &^ (nearPiece - 1)
	if addr == 0 || m.depth == 0 || len(m.wanted) >= maxWanted || slices.Contains(m.addr[:m.n], begin) ||
		slices.ContainsFunc(m.wanted, func(r process.Range) bool { return r.Addr == begin }) {
		return
	}
	i := m.room()
	m.take(i, 1)
	m.wanted = append(m.wanted, process.Range{Addr: begin, Buf: m.pieces[i][:]})
	m.wantedAt = append(m.wantedAt, i)
}

// fetch reads all wanted pieces with one call. If a piece cannot be read, a later Read returns the error.
func (m *nearMemory) fetch() {
	if len(m.wanted) == 0 {
		return
	}
	m.Memory.ReadMany(m.wanted)
	for k, i := range m.wantedAt {
		if m.wanted[k].OK {
			m.addr[i] = m.wanted[k].Addr
		}
	}
	m.wanted, m.wantedAt = m.wanted[:0], m.wantedAt[:0]
}

func (vm *VM) setMemory(t process.Target) {
	vm.t, vm.mem = t, process.NewReader(t)
	vm.nearby = &nearMemory{Memory: t}
	vm.near = process.NewReader(vm.nearby)
}

// BeginQuestion and EndQuestion enclose code that needs many methods.
func (vm *VM) BeginQuestion() { vm.nearby.begin() }

// EndQuestion is the counterpart of BeginQuestion.
func (vm *VM) EndQuestion() { vm.nearby.end() }
