package vmstructs

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"slices"

	"goprof/process"
)

// fact is memory of the target from which cached data was made. While the memory is unchanged, the data is true.
type fact struct {
	addr   uint64
	want   []byte
	parts  []part // the relevant parts of want; nil: all of it
	proof  uint64 // the number of the last walk that has noted it
	listed uint64 // in the last Proof that has listed it: the number of the first walk
}

// part is a relevant part of a fact. Memory between the parts may change.
type part struct{ begin, end int }

func (f *fact) agrees(got []byte) bool {
	if f.parts == nil {
		return bytes.Equal(got, f.want)
	}
	for _, p := range f.parts {
		if p.begin > p.end || p.end > len(got) || !bytes.Equal(got[p.begin:p.end], f.want[p.begin:p.end]) {
			return false
		}
	}
	return true
}

// holdsTrue reads one fact again.
func (vm *VM) holdsTrue(f *fact) bool { return vm.reads(vm.mem, f) }

// seemsTrue is holdsTrue with memory that was already read for the present question. Its callers prove the fact
// afterwards.
func (vm *VM) seemsTrue(f *fact) bool { return vm.reads(vm.near, f) }

// reads reports whether a fact is unchanged in the memory of r.
func (vm *VM) reads(r *process.Reader, f *fact) bool {
	if cap(vm.blobs.check) < len(f.want) {
		vm.blobs.check = make([]byte, len(f.want))
	}
	got := vm.blobs.check[:len(f.want)]
	return r.Bytes(f.addr, got) == nil && f.agrees(got)
}

// noteBlob records the fact that identifies b, which later reads are compared with: the block is in use, the block's
// size, and the blob's name and size. For an nmethod it also has the method, the entry and the compile id, which is
// never given twice. Since 23 an nmethod has data outside the code cache, which the JVM frees before the blocks. So the
// fact also has the pointers to the data (code/nmethod.cpp, nmethod::purge, sets them to the blob's end;
// gc/shared/classUnloadingContext.cpp then frees the blocks).
func (vm *VM) noteBlob(b *Blob, blk block) {
	parts := vm.blobParts(b.Kind.IsNmethod())
	n := 0
	for _, p := range parts {
		n = max(n, p.end)
	}
	head := vm.blobs.head[:n]
	b.fact = fact{addr: blk.addr, want: append([]byte(nil), head...), parts: parts}
	b.bytes += n
}

// blobParts returns the parts of a block's beginning that identify its blob, which is an nmethod or another blob.
func (vm *VM) blobParts(nmethod bool) []part {
	i := 0
	if nmethod {
		i = 1
	}
	if vm.blobs.parts[i] == nil {
		vm.blobs.parts[i] = vm.l.blobParts(nmethod)
	}
	return vm.blobs.parts[i]
}

// blobParts lists the parts of a blob's header that identify the blob.
func (l *layout) blobParts(nmethod bool) []part {
	cl, bl, nl := &l.code, &l.blob, &l.nm
	at := func(o offset, n int) part {
		begin := int(cl.blockSize) + int(o)
		return part{begin, begin + n}
	}
	parts := []part{
		{int(cl.blockLength.offset), int(cl.blockLength.offset) + int(cl.blockLength.width)},
		{int(cl.blockUsed), int(cl.blockUsed) + 1},
		at(bl.name, 8), at(bl.length, 4),
	}
	if nmethod {
		parts = append(parts, at(nl.method, 8), at(nl.entryBCI, 4), at(nl.compileID, 4))
		for _, data := range [...]offset{nl.immutable, bl.mutable} {
			if data.ok() {
				parts = append(parts, at(data, 8))
			}
		}
	}
	return parts
}

// Proof shows that the data which a walk used was true. First walk with cached data and note each blob and method, then
// call Check. Check reads all noted facts again, in one batch. If a fact has changed, Check drops the cached data, and
// the walk must be repeated. A Proof that has been used before does not allocate.
//
// Several walks may be proven with one read: call End after each; SinceOf returns the result of each.
//
// For methods in compiled code it is enough to note the blob, because methods live as long as their code. An
// interpreted frame needs Method.
type Proof struct {
	vm      *VM
	first   uint64 // number of the first walk since Reset
	gen     uint64 // number of the present walk
	facts   []*fact
	blobs   []*Blob
	methods []*Method
	ends    []walkEnd // of walks that have ended
	ranges  []process.Range
	places  []place // where the facts are read to
	buf     []byte
	unloads [8]byte
}

type walkEnd struct{ blobs, methods int }

// place is where a fact is read to: the index of a range, and the offset in that range.
type place struct{ rng, at int }

// Facts that are this close to each other are read as one range. Each range costs the kernel some work, and the
// metadata of a class are close together. A gap below a page is in the pages of its two ends, so it is mapped if its
// ends are.
const (
	nearFact = 2048
	maxRange = 64 << 10
)

func (vm *VM) NewProof() *Proof {
	p := &Proof{vm: vm}
	p.Reset()
	return p
}

// Reset empties p for the next walk.
func (p *Proof) Reset() {
	p.vm.proofs++
	p.first, p.gen = p.vm.proofs, p.vm.proofs
	// The facts may be the only pointers to large data.
	clear(p.facts)
	clear(p.blobs)
	clear(p.methods)
	p.facts, p.blobs, p.methods = p.facts[:0], p.blobs[:0], p.methods[:0]
	p.ends = p.ends[:0]
}

// End ends the notes of one walk. Later notes belong to the next walk.
func (p *Proof) End() {
	p.vm.takeNotes() // otherwise many walks would use up all notes
	p.vm.proofs++
	p.gen = p.vm.proofs
	p.ends = append(p.ends, walkEnd{len(p.blobs), len(p.methods)})
}

// Blob notes that the walk has used b.
func (p *Proof) Blob(b *Blob) {
	if p.note(&b.fact) {
		p.blobs = append(p.blobs, b)
	}
}

// Method notes that the walk has used m.
func (p *Proof) Method(m *Method) {
	if !p.note(&m.facts[0]) {
		return
	}
	p.methods = append(p.methods, m)
	m.noteAll(p)
}

// note adds a fact for this walk, and reports whether it is new to the walk. Walks that are proven together share most
// facts, and each fact is read once for all of them.
func (p *Proof) note(f *fact) bool {
	if f.proof == p.gen || f.want == nil {
		return false
	}
	if f.listed != p.first {
		p.facts = append(p.facts, f)
	}
	f.proof, f.listed = p.gen, p.first
	return true
}

// Check reads all noted facts again. If one has changed, it drops the fact's data, and returns false without an error.
func (p *Proof) Check() (bool, error) {
	if len(p.facts) == 0 {
		return true, nil
	}
	p.plan()
	u := &p.vm.unloads
	if u.addr != 0 {
		p.ranges = append(p.ranges, process.Range{Addr: u.addr, Buf: p.unloads[:]})
	}
	p.vm.t.ReadMany(p.ranges)
	if u.addr != 0 {
		if p.ranges[len(p.ranges)-1].OK {
			u.note(p.unloads[:], p.vm.now())
		} else {
			u.since = math.MaxInt64 // classes may have been unloaded
		}
	}
	ok := true
	for i, f := range p.facts {
		r := &p.ranges[p.places[i].rng]
		at := p.places[i].at
		if !r.OK || !f.agrees(r.Buf[at:at+len(f.want)]) {
			f.proof = 0 // marks it as broken for evict
			ok = false
		}
	}
	if ok {
		return true, nil
	}
	p.evict()
	return false, p.gone()
}

// plan sorts the facts and combines them to ranges.
func (p *Proof) plan() {
	slices.SortFunc(p.facts, func(a, b *fact) int { return cmp.Compare(a.addr, b.addr) })
	p.ranges, p.places = p.ranges[:0], p.places[:0]
	total := 0
	for i := 0; i < len(p.facts); {
		begin := p.facts[i].addr
		end := begin
		for ; i < len(p.facts); i++ {
			f := p.facts[i]
			if f.addr > end && f.addr-end > nearFact || f.addr-begin > maxRange {
				break
			}
			p.places = append(p.places, place{len(p.ranges), int(f.addr - begin)})
			end = max(end, f.addr+uint64(len(f.want)))
		}
		n := int(end - begin)
		if len(p.buf)-total < n {
			// Results that were already returned keep the old array.
			p.buf, total = make([]byte, 2*(len(p.buf)+n)), 0
		}
		p.ranges = append(p.ranges, process.Range{Addr: begin, Buf: p.buf[total : total+n : total+n]})
		total += n
	}
}

// evict drops all cached data to which a broken fact belongs.
func (p *Proof) evict() {
	for _, b := range p.blobs {
		if b.fact.proof == 0 {
			p.vm.blobs.evict(b)
		}
	}
	for _, m := range p.methods {
		if m.broken() {
			p.vm.methods.evict(m)
		}
	}
}

// gone distinguishes a process that has ended from a process whose memory has changed.
func (p *Proof) gone() error {
	var b [1]byte
	if err := p.vm.t.Read(p.vm.heaps[0].addr, b[:]); errors.Is(err, process.ErrGone) {
		return err
	}
	return nil
}
