package process

import (
	"bytes"
	"debug/elf"
	"hash/maphash"
	"io"
	"maps"
	"slices"
	"sync"
	"unsafe"
	"weak"
)

// The JVMs of a host run the same libjvm, whose symbols and unwind information have 4 MB and more. So goprof keeps
// equal pieces of files only once, while any image uses them, and sorts a table of symbols only once. It compares the
// pieces' contents. So a file that only claims to be the same (for example by its build id) cannot replace the file of
// another process.

const (
	// sharedFrom is the smallest size of a piece that is shared.
	sharedFrom = 4 << 10
	// A piece is compared with up to mostAlike pieces at the same offset in files of the same size.
	mostAlike = 4
	// A piece that is already in use costs only 1/sharedPart of its price (budget.go), because it takes no more memory.
	// With a divisor of 8, the 176th JVM of a host had no symbols.
	sharedPart = 64
	// maxCheap bounds the bytes at the low price. The process that paid the full price may end while others still use the
	// piece.
	maxCheap = 64 << 20
	// maxPlaces bounds the filePlaces that are remembered.
	maxPlaces = 1 << 12
	// comparePiece is the number of bytes that are compared at a time.
	comparePiece = 256 << 10
)

type pieces struct {
	mu     sync.Mutex
	seed   maphash.Seed
	known  map[uint64][]piece
	sweep  int // the number of pieces at which those no longer in use are removed
	places map[filePlace][]piece
	orders map[orderKey]weak.Pointer[order]
	cheap  map[weak.Pointer[byte]]int // the pieces at the low price, and their sizes
	recent recent
}

type piece struct {
	first weak.Pointer[byte]
	size  int
}

// filePlace is the range of a piece in a file of that size.
type filePlace struct{ file, off, size uint64 }

var shared = newPieces()

func newPieces() *pieces {
	return &pieces{seed: maphash.MakeSeed(), known: map[uint64][]piece{}, sweep: 64, places: map[filePlace][]piece{},
		orders: map[orderKey]weak.Pointer[order]{}, cheap: map[weak.Pointer[byte]]int{}}
}

// bytes returns the piece. It is nil if the piece is no longer in use.
func (k piece) bytes() []byte {
	first := k.first.Value()
	if first == nil {
		return nil
	}
	return unsafe.Slice(first, k.size)
}

// one returns an existing piece that is equal to b, or else b itself. The result must not be written to.
func (p *pieces) one(b []byte) []byte {
	if len(b) < sharedFrom {
		return b
	}
	hash := maphash.Bytes(p.seed, b)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.known[hash] {
		if old := k.bytes(); old != nil && bytes.Equal(old, b) {
			p.recent.use(unsafe.SliceData(old), len(old))
			return old
		}
	}
	if len(p.known) >= p.sweep {
		p.forget()
	}
	p.known[hash] = append(alive(p.known[hash]), piece{weak.Make(unsafe.SliceData(b)), len(b)})
	p.recent.use(unsafe.SliceData(b), len(b))
	return b
}

// read reads a piece of a file. If the piece is in use, read only compares the file with it, and leaves no garbage. had
// reports whether the piece has the low price.
func (p *pieces) read(r io.ReaderAt, at filePlace) (b []byte, had bool, err error) {
	if at.size >= sharedFrom {
		for _, old := range p.alike(at) {
			if isThere(r, old, int64(at.off)) {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.recent.use(unsafe.SliceData(old), len(old))
				return old, p.isCheap(old), nil
			}
		}
	}
	b = make([]byte, at.size)
	if got, err := r.ReadAt(b, int64(at.off)); uint64(got) < at.size {
		return nil, false, err
	}
	b = p.one(b)
	if at.size >= sharedFrom {
		p.mu.Lock()
		defer p.mu.Unlock()
		all := append(alive(p.places[at]), piece{weak.Make(unsafe.SliceData(b)), len(b)})
		if len(p.places) >= maxPlaces {
			clear(p.places) // a place that is missing is only read again
		}
		p.places[at] = all[max(len(all)-mostAlike, 0):]
	}
	return b, false, nil
}

// isCheap reports whether a piece that is in use has the low price. The caller holds p.mu.
func (p *pieces) isCheap(b []byte) bool {
	k := weak.Make(unsafe.SliceData(b))
	if _, known := p.cheap[k]; known {
		return true
	}
	sum := len(b)
	for k, size := range p.cheap {
		if sum += size; k.Value() == nil {
			sum -= size
			delete(p.cheap, k)
		}
	}
	if sum > maxCheap {
		return false
	}
	p.cheap[k] = len(b)
	return true
}

// paidInPart reports whether a piece has the low price.
func (p *pieces) paidInPart(b []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, known := p.cheap[weak.Make(unsafe.SliceData(b))]
	return len(b) > 0 && known
}

// alike returns the pieces that were read at a filePlace.
func (p *pieces) alike(at filePlace) (all [][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.places[at] {
		if b := k.bytes(); b != nil {
			all = append(all, b)
		}
	}
	return all
}

var compareBuffers = sync.Pool{New: func() any { return new([comparePiece]byte) }}

func isThere(r io.ReaderAt, want []byte, off int64) bool {
	buf := compareBuffers.Get().(*[comparePiece]byte)
	defer compareBuffers.Put(buf)
	for len(want) > 0 {
		b := buf[:min(len(want), comparePiece)]
		if n, _ := r.ReadAt(b, off); n < len(b) || !bytes.Equal(b, want[:n]) {
			return false
		}
		want, off = want[len(b):], off+int64(len(b))
	}
	return true
}

// order is the symbols of a table, sorted by address.
type order struct {
	symbols []uint32
	progs   []elf.Prog64 // the segments that hold code
}

// orderKey identifies an order by its inputs. Weak pointers to the same piece are equal.
type orderKey struct {
	raw, names         weak.Pointer[byte]
	rawSize, namesSize int
}

// order returns the order of a table. It makes the order if there is none.
func (p *pieces) order(raw, names []byte, progs []elf.Prog64, sort func() []uint32) *order {
	if len(raw) < sharedFrom || len(names) < sharedFrom {
		return &order{symbols: sort()}
	}
	key := keyOf(raw, names)
	p.mu.Lock()
	o := p.orders[key].Value()
	p.mu.Unlock()
	if o == nil || !slices.Equal(o.progs, progs) {
		o = &order{symbols: sort(), progs: slices.Clone(progs)} // takes long, so p.mu is not held
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.orders[key] = weak.Make(o)
	p.recent.use(o, 4*cap(o.symbols))
	return o
}

// hasOrder reports whether order would find the order of a table. Files with the same table may have different progs.
func (p *pieces) hasOrder(raw, names []byte, progs []elf.Prog64) bool {
	if len(raw) < sharedFrom || len(names) < sharedFrom {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.orders[keyOf(raw, names)].Value()
	return o != nil && slices.Equal(o.progs, progs)
}

func keyOf(raw, names []byte) orderKey {
	return orderKey{weak.Make(unsafe.SliceData(raw)), weak.Make(unsafe.SliceData(names)), len(raw), len(names)}
}

func alive(all []piece) []piece {
	return slices.DeleteFunc(all, func(k piece) bool { return k.first.Value() == nil })
}

func keepAlive[K comparable](of map[K][]piece) {
	for key, all := range of {
		if of[key] = alive(all); len(of[key]) == 0 {
			delete(of, key)
		}
	}
}

// forget removes the pieces that are no longer used.
func (p *pieces) forget() {
	keepAlive(p.known)
	keepAlive(p.places)
	maps.DeleteFunc(p.orders, func(_ orderKey, o weak.Pointer[order]) bool { return o.Value() == nil })
	p.sweep = max(2*len(p.known), 64)
}

// recent keeps the pieces that were used most recently, even if no image uses them any more.
type recent struct {
	most, size int
	kept       []keptPiece // the most recently used comes last
}

type keptPiece struct {
	what any // a pointer
	size int
}

func (r *recent) use(what any, size int) {
	if size > r.most {
		return
	}
	if i := slices.IndexFunc(r.kept, func(k keptPiece) bool { return k.what == what }); i >= 0 {
		r.kept = append(slices.Delete(r.kept, i, i+1), keptPiece{what, size})
		return
	}
	r.kept, r.size = append(r.kept, keptPiece{what, size}), r.size+size
	r.trim()
}

// trim drops the least recently used pieces.
func (r *recent) trim() {
	for r.size > r.most {
		r.size -= r.kept[0].size
		r.kept = slices.Delete(r.kept, 0, 1)
	}
}

// KeepLibraries keeps up to size bytes of recently read libraries. It is for a caller that opens one process after the
// other.
func KeepLibraries(size int) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.recent.most = max(size, 0)
	shared.recent.trim()
}
