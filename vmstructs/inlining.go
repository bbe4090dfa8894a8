package vmstructs

import (
	"encoding/binary"
	"sync"
)

// Place is one method in the tree of methods that are inlined into an nmethod. Site is a bytecode of a Place. Both are
// hashes of the methods and bytecode indexes on the path from the method that owns the code.
type (
	Place uint64
	Site  uint64
)

// Site returns a bytecode of the method at a place.
func (p Place) Site(bci int32) Site { return Site(mix(uint64(p), uint64(uint32(bci)))) }

// Inlined returns the Place of a method that is inlined at a site.
func (s Site) Inlined(method uint64) Place { return Place(mix(uint64(s), method)) }

// PlaceOf returns the Place of the innermost method of a chain.
func PlaceOf(chain []Scope) Place {
	p := Site(0).Inlined(chain[len(chain)-1].Method.Addr)
	for i := len(chain) - 2; i >= 0; i-- {
		p = p.Site(chain[i+1].BCI).Inlined(chain[i].Method.Addr)
	}
	return p
}

// mix is a step of a hash (murmur3's finalizer).
func mix(h, v uint64) uint64 {
	h ^= v * 0x9e3779b97f4a7c15
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	return h ^ h>>29
}

const maxSites = 1 << 14

// NumRecords is the number of pcs that the compiler recorded, or slightly more.
func (b *Blob) NumRecords() int { return b.debug.count() }

// Inlinings returns the methods that are inlined at each site, by the records of b. It calls each with the site of each
// record.
func (vm *VM) Inlinings(b *Blob, each func(pc uint64, s Site)) *SiteTable {
	n := min(b.debug.count(), maxSites)
	seen := seenScopes.Get().(*scopeCache)
	defer seenScopes.Put(seen)
	clear(seen[:])
	t := inliningReader{b: b, x: vm.l.method.unsigned5X, seen: seen, tree: NewSiteTable(n / 4)}
	for i := range b.debug.count() {
		rel, at := b.debug.pcOffset(i), b.debug.scopeOffset(i)
		if rel < 0 || !b.holds(b.Begin+uint64(rel)) || at == noScope || t.decoded > maxDecoded {
			continue
		}
		if s := t.site(at, 0); s != 0 {
			each(b.Begin+uint64(rel), s)
		}
	}
	tree := t.tree // only the tree: the reader keeps the shared buffers
	return &tree
}

// scopeCache has the sites of the scopes that were decoded last, by their offsets. Neighbouring records share most of
// their senders. A table of all scopes would not fit into the CPU's cache.
type scopeCache [512]struct {
	at   int32 // 0: free
	site Site
}

// maxDecoded bounds the scopes that are decoded for a tree.
const maxDecoded = 4 * maxSites

// seenScopes has buffers for VMs that read a tree.
var seenScopes = sync.Pool{New: func() any { return new(scopeCache) }}

type inliningReader struct {
	b       *Blob
	x       uint8
	seen    *scopeCache
	decoded int
	tree    SiteTable
}

// site returns the site of a scope, from the cache or by decoding the scope and its senders. It returns 0 if they
// cannot be decoded.
func (t *inliningReader) site(at int32, depth int) Site {
	c := &t.seen[uint32(at)*0x9e3779b1>>(32-9)]
	if c.at == at && at != 0 {
		return c.site
	}
	s := t.decode(at, depth)
	c.at, c.site = at, s
	return s
}

// decode adds the scope at an offset and its senders to the tree, and returns its site.
func (t *inliningReader) decode(at int32, depth int) Site {
	d := &t.b.debug
	t.decoded++
	if depth >= maxInline || at < 0 || int(at) >= len(d.scopes) {
		return 0
	}
	in := stream{b: d.scopes, pos: int(at), x: t.x}
	sender, method, bci := in.u5(), in.u5(), int64(in.u5())-1
	if in.bad || method == 0 || uint64(method) > uint64(len(d.metadata)/8) || bci >= maxBCI {
		return 0
	}
	addr := binary.LittleEndian.Uint64(d.metadata[8*(method-1):])
	var from Site
	if sender != noScope {
		if from = t.site(int32(sender), depth+1); from == 0 {
			return 0
		}
		t.tree.Set(from, addr)
	}
	return from.Inlined(addr).Site(int32(bci))
}
