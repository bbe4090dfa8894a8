package unwind

import "goprof/vmstructs"

// inlining is what an nmethod's records say of its tree of inlined methods: at which sites which method is inlined, by its
// address, and at which one is called.
type inlining map[vmstructs.Site]uint64

// isCalled stands for a method that is called.
const isCalled = 1

// inlinings reads b's tree once.
func (w *Walker) inlinings(b *vmstructs.Blob, m *codeMap) inlining {
	if m.tree != nil {
		return m.tree
	}
	var called []vmstructs.Site
	java := map[uint64]bool{}
	tree := w.vm.Inlinings(b, func(pc uint64, s vmstructs.Site) {
		if w.isJavaCall(b, m, pc, java) {
			called = append(called, s)
		}
	})
	for _, s := range called {
		if tree[s] == 0 {
			tree[s] = isCalled
		}
	}
	m.tree = tree
	w.mapped += 8 * len(tree)
	return tree
}

// isJavaCall reports whether a record is that of a call which its bytecode makes. A call of the VM is none: that of an uncommon
// trap, from which the interpreter goes on, or of a slow path. known is what is known of where calls lead.
func (w *Walker) isJavaCall(b *vmstructs.Blob, m *codeMap, pc uint64, known map[uint64]bool) bool {
	end, n := pc-b.Begin, uint64(w.cpu.MaxCall)
	if end > uint64(len(m.code)) || end < n {
		return false
	}
	to, ok := w.cpu.CallTarget(m.code[end-n:end], pc)
	if !ok {
		return false
	}
	java, ok := known[to]
	if !ok {
		callee, err := w.vm.Blob(to)
		java = err == nil && callee.Kind != vmstructs.UncommonTrap && callee.Kind != vmstructs.RuntimeStub
		known[to] = java
	}
	return java
}

const (
	// maxCallees bounds the methods that one route asks for.
	maxCallees = 32
	// C2 inlines methods of that many bytes at most where they are called often, C1 of fewer (FreqInlineSize, C1MaxInlineSize).
	maxInlinedC2, maxInlinedC1 = 325, 35
	// maxInlineLevel is how deep they inline (MaxInlineLevel, C1MaxInlineLevel).
	maxInlineLevel = 15
)

// callee is the method that is inlined at an invoke of the innermost of some methods, nil where none is that anybody could name.
func (r *router) callee(chain []vmstructs.Scope, p vmstructs.Place, b *vmstructs.Bytecode) *vmstructs.Method {
	if r.tree == nil || len(chain) > maxInlineLevel || r.asked >= maxCallees {
		return nil
	}
	r.asked++
	addr := r.tree[p.Site(b.BCI)]
	switch {
	case addr == isCalled:
		return nil
	case addr != 0:
		m, err := r.w.vm.MethodNow(addr)
		if err != nil {
			return nil
		}
		return m
	}
	m := r.w.invoked(chain[0].Method, b)
	most := maxInlinedC2
	if r.level < levelC2 {
		most = maxInlinedC1
	}
	if m == nil || m.Native || m.CodeSize == 0 || m.CodeSize > most {
		return nil
	}
	for _, s := range chain {
		if s.Method == m {
			return nil // a recursive method is called
		}
	}
	return m
}
