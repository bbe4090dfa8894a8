package vmstructs

import (
	"errors"
	"strings"
	"testing"
)

// TestParametersOf: the number of parameters in a signature.
func TestParametersOf(t *testing.T) {
	for _, r := range []struct {
		signature string
		want      int
		ok        bool
	}{
		{"()V", 0, true}, {"(I)V", 1, true}, {"(JD)V", 2, true}, {"(Ljava/lang/Object;[[Lx/Y;[IZ)Z", 4, true},
		{"", 0, false}, {"I)V", 0, false}, {"(I", 1, false}, {"(Ljava/lang/Object", 1, false}, {"([", 1, false},
		{"(" + strings.Repeat("I", maxParameters) + ")V", maxParameters, true},
		{"(" + strings.Repeat("I", 1000) + ")V", maxParameters, false},
	} {
		if n, ok := parametersOf(r.signature); n != r.want || ok != r.ok {
			t.Errorf("%.20s: %d %v, not %d %v", r.signature, n, ok, r.want, r.ok)
		}
	}
}

// handleWorld is a world in which a method calls a VarHandle that it loads from a static field.
type handleWorld struct {
	*world
	m                                    *Method
	call, load                           Bytecode
	guard, pool, klass, base, sub, super uint64
	linked, field                        uint64 // the two entries of the constant pool's cache
	handle, mirror, object               uint64
	name, access                         uint64
}

const handleField = 112

const accessSignature = "(Ljava/lang/invoke/VarHandle;Ljava/lang/Object;J)Z"

func newHandleWorld(t *testing.T, w *world, narrow bool) *handleWorld {
	t.Helper()
	h := &handleWorld{world: w, call: Bytecode{Op: OpInvoke, Handle: true, Index: 1, Target: -1},
		load: Bytecode{Op: OpGetstatic, Index: 2, Target: -1}}
	h.guard = w.method(w.class(strings.ReplaceAll(classGuards, ".", "/"), "VarHandleGuards.java"), 1, "guard", "()V", nil)
	h.base, h.super, h.sub = w.alloc(2048), w.alloc(2048), w.alloc(2048)
	w.put64(h.base+uint64(w.l.method.klassName), w.symbol(classVarHandle))
	w.put64(h.sub+uint64(w.l.invoke.named.super), h.super)
	w.put64(h.super+uint64(w.l.invoke.named.super), h.base)
	h.name = w.symbol("compareAndSet")
	h.access = h.method(accessSignature, accStatic)
	h.declare(h.sub, h.access)
	h.fillPool()
	h.fillCache()
	h.fillHeap(narrow)
	var err error
	if h.m, err = w.vm.MethodNow(w.method(h.pool, 1, "caller", "()V", nil)); err != nil {
		t.Fatal(err)
	}
	return h
}

// method makes a method with the name of the access.
func (h *handleWorld) method(signature string, flags uint16) uint64 {
	pool := h.class("app/Access", "Access.java")
	m := h.world.method(pool, 1, "compareAndSet", signature, nil)
	h.put64(pool+h.l.method.poolSize+8, h.name) // there is only one copy of each symbol
	h.put16(m+uint64(h.l.method.accessFlags), flags)
	return m
}

func (h *handleWorld) declare(klass uint64, methods ...uint64) {
	l := &h.l.invoke.named
	array := h.alloc(64)
	h.put32(array+uint64(h.l.method.arrayLen), uint32(len(methods)))
	for i, m := range methods {
		h.put64(array+uint64(l.data)+8*uint64(i), m)
	}
	h.put64(klass+uint64(l.methods), array)
}

// fillPool makes the constants of the caller's class. 1 and 2 are its own name and signature. 3 is the method that it
// calls: class 4, and name and signature 5, which are 6 and 7.
func (h *handleWorld) fillPool() {
	l := &h.l.method
	h.pool, h.klass = h.alloc(int(l.poolSize)+8*16), h.alloc(2048)
	h.put64(h.pool+uint64(l.poolHolder), h.klass)
	h.put32(h.pool+uint64(l.poolLength), 16)
	h.put64(h.klass+uint64(l.klassName), h.symbol("app/Caller"))
	slot := func(i, v uint64) { h.put64(h.pool+l.poolSize+8*i, v) }
	slot(3, 4|5<<16)
	slot(4, 0|8<<16)
	slot(5, 6|7<<16)
	slot(6, h.name)
	slot(7, h.symbol("(Ljava/lang/Object;J)Z"))
	slot(8, h.symbol(classVarHandle))
	array := h.alloc(64)
	h.put32(array+uint64(l.arrayLen), 1)
	h.put64(array+uint64(h.l.invoke.klassesData), h.base)
	h.put64(h.pool+uint64(h.l.invoke.klasses), array)
}

// fillCache makes entry 1, of the call, and entry 2, of the field.
func (h *handleWorld) fillCache() {
	l := &h.l.invoke
	cache := h.alloc(1024)
	h.put64(h.pool+uint64(l.cache), cache)
	array := func(at, data offset, size uint64) uint64 {
		a := h.alloc(512)
		h.put64(cache+uint64(at), a)
		h.put32(a+uint64(h.l.method.arrayLen), 3)
		return a + uint64(data) + size
	}
	if l.length.ok() && !l.methods.ok() {
		h.put32(cache+uint64(l.length), 3)
		h.linked = cache + l.cacheSize + l.entrySize
		h.put32(h.linked+uint64(l.indices), 3|opInvokeHandle<<16)
		h.put64(h.linked+uint64(l.f1), h.guard)
	} else {
		h.linked = array(l.methods, l.methodsData, l.entrySize)
		h.put64(h.linked, h.guard)
		h.put16(h.linked+uint64(l.constant), 3)
		h.put(h.linked+22, opInvokeHandle, 0)
	}
	if l.fields.entries.ok() {
		h.field = array(l.fields.entries, l.fields.data, 2*fieldEntrySize)
		h.put64(h.field, h.klass)
	} else {
		h.field = cache + l.cacheSize + 2*l.entrySize
		h.put64(h.field+uint64(l.f1), h.klass)
	}
	h.setField(handleField, OpGetstatic, 0, true)
}

// setField changes the field's entry in the cache.
func (h *handleWorld) setField(at int32, get, put uint8, final bool) {
	l := &h.l.invoke
	flag := uint64(0)
	if final {
		flag = 1
	}
	if l.fields.entries.ok() {
		h.put32(h.field+fieldEntryOffset, uint32(at))
		h.put(h.field+fieldEntryFlags, byte(flag)<<fieldEntryFinal, get, put)
		return
	}
	h.put64(h.field+uint64(l.f2), uint64(int64(at)))
	h.put(h.field+uint64(l.indices), 9, 0, get, put)
	h.put64(h.field+uint64(l.flags), flag<<l.final)
}

// fillHeap makes the mirror and the VarHandle.
func (h *handleWorld) fillHeap(narrow bool) {
	h.handle, h.mirror, h.object = h.alloc(8), h.alloc(512), h.alloc(64)
	h.put64(h.klass+uint64(h.l.handles.mirror), h.handle)
	h.put64(h.handle, h.mirror)
	h.vm.objects = objectModel{asked: true}
	h.vm.java.heap = heapModel{}
	if narrow {
		h.vm.java.heap = heapModel{narrow: true, base: worldData - 64, shift: 3}
		h.vm.objects.klasses = klassModel{narrow: true, base: worldData - 64, shift: 3}
	}
	h.refer(h.mirror+handleField, h.object)
	h.setClass(h.object, h.sub)
}

func (h *handleWorld) refer(at, object uint64) {
	if heap := &h.vm.java.heap; heap.narrow {
		h.put32(at, uint32((object-heap.base)>>heap.shift))
	} else {
		h.put64(at, object)
	}
}

func (h *handleWorld) setClass(object, klass uint64) {
	if k := &h.vm.objects.klasses; k.narrow {
		h.put32(object+8, uint32((klass-k.base)>>k.shift))
	} else {
		h.put64(object+8, klass)
	}
}

// TestAccessed: the method with which a VarHandle accesses memory is found if all data that leads to it is consistent.
func TestAccessed(t *testing.T) {
	const garbage = 0x5a5a5a5a5a5a5a58
	for _, r := range []struct {
		name   string
		change func(h *handleWorld)
		found  bool
	}{
		{"a VarHandle", func(*handleWorld) {}, true},
		{"the method of a class above", func(h *handleWorld) {
			h.declare(h.sub)
			h.declare(h.super, h.access)
		}, true},
		{"a method of an object beside", func(h *handleWorld) {
			h.declare(h.sub, h.method(accessSignature, 0), h.access)
		}, true},
		{"a field that is not final", func(h *handleWorld) { h.setField(handleField, OpGetstatic, 0, false) }, false},
		{"a field that is not resolved", func(h *handleWorld) { h.setField(handleField, 0, 0, true) }, false},
		{"a field that was only written", func(h *handleWorld) { h.setField(handleField, 0, OpPutstatic, true) }, false},
		{"a field of an object", func(h *handleWorld) { h.setField(handleField, OpGetfield, 0, true) }, false},
		{"a field before the mirror", func(h *handleWorld) { h.setField(-8, OpGetstatic, 0, true) }, false},
		{"a field far behind", func(h *handleWorld) { h.setField(1<<30, OpGetstatic, 0, true) }, false},
		{"another load", func(h *handleWorld) { h.load.Op = OpGetfield }, false},
		{"no such entry of the cache", func(h *handleWorld) { h.load.Index = 77 }, false},
		{"no such call", func(h *handleWorld) { h.call.Index = 77 }, false},
		{"a call of no handle", func(h *handleWorld) { h.call.Handle = false }, false},
		{"a call of another class", func(h *handleWorld) {
			h.put64(h.base+uint64(h.l.method.klassName), h.symbol("java/lang/invoke/MethodHandle"))
		}, false},
		{"no handle of the mirror", func(h *handleWorld) { h.put64(h.klass+uint64(h.l.handles.mirror), 0) }, false},
		{"a handle that is none", func(h *handleWorld) { h.put64(h.klass+uint64(h.l.handles.mirror), garbage) }, false},
		{"no mirror", func(h *handleWorld) { h.put64(h.handle, 0) }, false},
		{"a mirror that is none", func(h *handleWorld) { h.put64(h.handle, garbage) }, false},
		{"a mirror that is not aligned", func(h *handleWorld) { h.put64(h.handle, h.mirror+4) }, false},
		{"no VarHandle", func(h *handleWorld) { h.put64(h.mirror+handleField, 0) }, false},
		{"an object that is none", func(h *handleWorld) { h.put64(h.mirror+handleField, garbage) }, false},
		{"an object that was moved", func(h *handleWorld) { h.put64(h.object, 3) }, false},
		{"a class that is none", func(h *handleWorld) { h.put64(h.object+8, garbage) }, false},
		{"an object of another class", func(h *handleWorld) { h.setClass(h.object, h.klass) }, false},
		{"a VarHandle of no kind", func(h *handleWorld) { h.setClass(h.object, h.base) }, false},
		{"classes above without end", func(h *handleWorld) {
			h.put64(h.super+uint64(h.l.invoke.named.super), h.sub)
		}, false},
		{"no method of that name", func(h *handleWorld) { h.declare(h.sub) }, false},
		{"methods without end", func(h *handleWorld) {
			h.put32(h.get64(t, h.sub+uint64(h.l.invoke.named.methods))+uint64(h.l.method.arrayLen), 1<<31)
		}, false},
		{"a method that is none", func(h *handleWorld) { h.declare(h.sub, garbage) }, false},
		{"a method of an object", func(h *handleWorld) { h.declare(h.sub, h.method(accessSignature, 0)) }, false},
		{"one of two", func(h *handleWorld) { h.declare(h.sub, h.access, h.method(accessSignature, accStatic)) }, false},
		{"other parameters", func(h *handleWorld) {
			h.declare(h.sub, h.method("(Ljava/lang/invoke/VarHandle;J)Z", accStatic))
		}, false},
	} {
		for _, j := range loadTables(t) {
			if j.major(t) < 9 {
				continue
			}
			for _, narrow := range []bool{false, true} {
				h := newHandleWorld(t, newWorld(t, j), narrow)
				r.change(h)
				got, _ := h.vm.Accessed(h.m, &h.call, &h.load)
				if found := got != nil && got.Addr == h.access; found != r.found || got != nil && !found {
					t.Errorf("%s, narrow %v, %s: %v", j.name, narrow, r.name, got)
				}
			}
		}
	}
}

// TestAccessedMoves: if the field refers to another object at the second reading, the result is that another attempt
// may succeed.
func TestAccessedMoves(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		if w.l.jdk8 {
			t.Skip("has no VarHandles")
		}
		h := newHandleWorld(t, w, false)
		other := h.alloc(64)
		h.setClass(other, h.sub)
		h.onRead = func(addr uint64) {
			if addr == h.object {
				h.refer(h.mirror+handleField, other)
			}
		}
		if m, err := h.vm.Accessed(h.m, &h.call, &h.load); m != nil || !errors.Is(err, ErrMoved) {
			t.Errorf("%v %v", m, err)
		}
		if m, err := h.vm.Accessed(h.m, &h.call, &h.load); m == nil || err != nil {
			t.Errorf("the next time: %v %v", m, err)
		}
	})
}

// TestInvokedHandle: an invoke of a handle's method calls the method to which the interpreter has linked it, if any.
func TestInvokedHandle(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		if w.l.jdk8 {
			t.Skip("has no VarHandles")
		}
		h := newHandleWorld(t, w, false)
		if w.l.invoke.intrinsic.ok() {
			w.putSized(h.guard, w.l.invoke.intrinsic, 7) // _compiledLambdaForm, or any other
		}
		c := h.vm.Invoked(h.m, &h.call)
		if c.Method == nil || c.Method.Addr != h.guard || c.Intrinsic || !c.Forced || c.Never || c.HandsOn {
			t.Errorf("%+v", c)
		}
		if !c.Method.GuardsHandle() || h.m.GuardsHandle() {
			t.Error("which one is the guard?")
		}
		plain := h.call
		plain.Handle = false
		if c = h.vm.Invoked(h.m, &plain); !w.l.invoke.methods.ok() && c.Method != nil {
			t.Errorf("no invoke of a handle: %+v", c)
		}
		if w.l.invoke.methods.ok() {
			w.put(h.linked+22, OpInvokeStatic, 0)
		} else {
			w.put(h.linked+uint64(w.l.invoke.indices)+2, OpInvokeStatic, 0)
		}
		if c = h.vm.Invoked(h.m, &h.call); c.Method != nil {
			t.Errorf("resolved as another: %+v", c)
		}
		if takes, puts, ok := h.vm.InvokeEffect(h.m, &h.call); takes != 3 || puts != 1 || !ok {
			t.Errorf("takes %d, puts %d, %v", takes, puts, ok)
		}
	})
}

// TestHandsOn: methods that only call their argument.
func TestHandsOn(t *testing.T) {
	for _, r := range []struct {
		m    Method
		want bool
	}{
		{Method{Class: classMethodHandle, Name: linkToStatic, Native: true}, true},
		{Method{Class: classMethodHandle, Name: "invokeBasic", Native: true}, true},
		{Method{Class: classMethodHandle, Name: "linkToStatic"}, false},
		{Method{Class: classMethodHandle, Name: "invokeExact", Native: true}, false},
		{Method{Class: "app.Handle", Name: linkToStatic, Native: true}, false},
	} {
		if got := r.m.handsOn(); got != r.want {
			t.Errorf("%s.%s: %v", r.m.Class, r.m.Name, got)
		}
	}
}
