package vmstructs

import (
	"encoding/binary"

	"goprof/process"
)

// No object of HikariCP shows which thread has borrowed a connection. But the thread has a proxy of the connection, a
// ProxyConnection, usually on its stack until it returns the connection. So goprof searches the stacks of waiting
// threads for references to proxies. A reference may be stale. So it counts only if the proxy is open and its
// connection is lent now. (HikariCP makes a proxy for each loan, and closes it when the connection is returned.)
//
// goprof does not find a holder that is running, that is a virtual thread, or that has stored the proxy only in another
// object.

const (
	classHikariProxy = "com/zaxxer/hikari/pool/ProxyConnection"
	classMadeProxy   = "com/zaxxer/hikari/pool/HikariProxyConnection" // its only subclass
	maxHolderStack   = 64 << 10                                       // bytes of each stack, from the last Java frame on
	maxHolderHeads   = 1 << 18                                        // objects that are read
	holderBatch      = 64                                             // objects that are read with one call
)

// findHolders finds the threads that hold connections, in pools for which threads wait.
func (p *Pools) findHolders(pools []*Connections) {
	lent := map[uint64]*poolEntry{}
	for _, c := range pools {
		for i := range c.entries {
			if c.Waiting.Or(0) > 0 {
				lent[c.entries[i].object.at&p.k.mask] = &c.entries[i]
			}
		}
	}
	if len(lent) == 0 {
		return
	}
	start, end, ok := p.k.vm.NewHealth().HeapRange()
	if !ok {
		return // with ZGC the tables do not have it
	}
	s := holderSearch{p: p, start: start, end: end, lent: lent, left: maxHolderHeads, proxies: map[uint64]bool{},
		stack: make([]byte, maxHolderStack)}
	for i := range p.k.threads {
		s.thread(&p.k.threads[i])
	}
	for _, c := range pools {
		for i := range c.entries {
			if e := &c.entries[i]; e.holder != 0 && !e.several {
				c.Holders = append(c.Holders, e.holder)
			}
		}
	}
}

type poolEntry struct {
	object     poolObject
	connection uint64
	holder     uint64 // a JavaThread
	several    bool   // more than one thread has its proxy on the stack
}

type holderSearch struct {
	p          *Pools
	start, end uint64 // of the heap
	lent       map[uint64]*poolEntry
	left       int
	proxies    map[uint64]bool // by Klass*: whether it is classMadeProxy
	stack      []byte
}

// thread searches a thread's stack. A thread without an anchor runs Java code, so its frames are changing.
func (s *holderSearch) thread(t *lockThread) {
	l := &s.p.k.vm.l.thread
	if !l.anchor.ok() || !l.sp.ok() || t.StackSize == 0 {
		return
	}
	sp, err := s.p.k.vm.mem.U64(t.Addr + uint64(l.anchor) + uint64(l.sp))
	if err != nil || sp == 0 || sp%8 != 0 || sp >= t.StackBase || sp < t.StackBase-t.StackSize {
		return
	}
	b := s.stack[:min(t.StackBase-sp, maxHolderStack)]
	if s.p.k.vm.mem.Bytes(sp, b) != nil {
		return
	}
	refs := s.references(b)
	heads := make([]byte, klassBytes*holderBatch)
	for len(refs) > 0 {
		n := min(len(refs), holderBatch)
		s.heads(t, refs[:n], heads)
		refs = refs[n:]
	}
}

// references returns the words that may be references into the heap, whole or compressed.
func (s *holderSearch) references(b []byte) (refs []uint64) {
	seen := map[uint64]bool{}
	add := func(at uint64) {
		if at >= s.start && at < s.end && at%8 == 0 && !seen[at] && s.left > 0 {
			seen[at] = true
			s.left--
			refs = append(refs, at)
		}
	}
	h := &s.p.k.vm.java.heap
	for i := 0; i+8 <= len(b); i += 8 {
		add(word(b[i:]))
		if h.narrow {
			add(h.base + uint64(binary.LittleEndian.Uint32(b[i:]))<<h.shift)
			add(h.base + uint64(binary.LittleEndian.Uint32(b[i+4:]))<<h.shift)
		}
	}
	return refs
}

// heads looks for proxies at these addresses.
func (s *holderSearch) heads(t *lockThread, refs []uint64, buf []byte) {
	p := s.p
	p.k.ranges = p.k.ranges[:0]
	for i, at := range refs {
		p.k.ranges = append(p.k.ranges, process.Range{Addr: at, Buf: buf[klassBytes*i:][:klassBytes:klassBytes]})
	}
	p.k.vm.t.ReadMany(p.k.ranges)
	for i := range p.k.ranges {
		if r := &p.k.ranges[i]; r.OK && s.mayBeProxy(r.Buf) {
			s.proxy(t, r.Addr)
		}
	}
}

// mayBeProxy reports whether a head has the class of a proxy, or belongs to an object that Shenandoah has moved.
func (s *holderSearch) mayBeProxy(head []byte) bool {
	klass := s.p.k.klasses.klassIn(head)
	if klass == 0 || klass%8 != 0 {
		return word(head)&3 == 3 && s.p.k.moves
	}
	is, known := s.proxies[klass]
	if !known {
		name, err := s.p.k.vm.klassName(klass)
		is = err == nil && name == classMadeProxy
		s.proxies[klass] = is
	}
	return is
}

// proxy records that a thread has the proxy at an address, if the proxy is open.
func (s *holderSearch) proxy(t *lockThread, at uint64) {
	o, ok := s.p.read(at)
	if !ok || !o.is(classHikariProxy) {
		return
	}
	e := s.lent[s.p.ref(&o, classHikariProxy, "poolEntry")&s.p.k.mask]
	delegate := s.p.ref(&o, classHikariProxy, "delegate") // another object if the proxy is closed
	if e == nil || delegate == 0 || !s.p.k.same(delegate, e.connection) {
		return
	}
	e.several = e.several || e.holder != 0 && e.holder != t.Addr
	e.holder = t.Addr
}
