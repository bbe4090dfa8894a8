package vmstructs

import (
	"encoding/binary"
	"testing"
)

func (w *world) get64(t *testing.T, addr uint64) uint64 {
	t.Helper()
	var b [8]byte
	if err := w.Read(addr, b[:]); err != nil {
		t.Fatal(err)
	}
	return binary.LittleEndian.Uint64(b[:])
}

// TestOnlyBelow: the subclasses of an abstract class show which method an invoke calls, if they have only one method
// that is not abstract at that index of their vtables. An impossible hierarchy is refused.
func TestOnlyBelow(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		pool := w.class("app/Impl", "Impl.java")
		none := w.method(pool, 1, "run", "()V", nil)
		w.put16(w.get64(t, none+uint64(w.l.method.constMethod))+uint64(w.l.method.codeSize), 0) // abstract
		one := w.method(w.class("app/One", "One.java"), 1, "run", "()V", nil)
		two := w.method(w.class("app/Two", "Two.java"), 1, "run", "()V", nil)
		const place = 3
		class := func(above, method uint64) uint64 {
			l := &w.l.invoke
			k := w.alloc(int(l.vtable) + 8*(place+1))
			w.put32(k+uint64(l.vtableLen), place+1)
			w.put64(k+l.vtable+8*place, method)
			if above != 0 {
				w.put64(k+uint64(l.named.super), above)
				first := above + uint64(w.l.hierarchy.first)
				w.put64(k+uint64(w.l.hierarchy.next), w.get64(t, first))
				w.put64(first, k)
			}
			return k
		}
		for _, r := range []struct {
			name string
			make func() uint64
			want uint64
		}{
			{"no class below", func() uint64 { return class(0, none) }, 0},
			{"one class below", func() uint64 {
				top := class(0, none)
				class(top, one)
				return top
			}, one},
			{"one that others inherit", func() uint64 {
				top := class(0, none)
				class(class(class(top, none), one), one)
				class(top, none)
				return top
			}, one},
			{"a method of its own", func() uint64 { return class(0, one) }, one},
			{"two", func() uint64 {
				top := class(0, none)
				class(top, one)
				class(class(top, none), two)
				return top
			}, 0},
			{"as many classes as are looked at", func() uint64 {
				top := class(0, none)
				for range maxBelow - 1 {
					class(top, one)
				}
				return top
			}, one},
			{"one more", func() uint64 {
				top := class(0, none)
				for range maxBelow {
					class(top, one)
				}
				return top
			}, 0},
			{"deeper than is looked at", func() uint64 {
				top := class(0, none)
				for k, n := top, 0; n < maxBelow; n++ {
					k = class(k, one)
				}
				return top
			}, 0},
			{"a list that leads back to itself", func() uint64 {
				top := class(0, none)
				k := class(top, one)
				w.put64(k+uint64(w.l.hierarchy.next), k)
				return top
			}, 0},
			{"a class below itself", func() uint64 {
				top := class(0, none)
				w.put64(top+uint64(w.l.invoke.named.super), top)
				w.put64(top+uint64(w.l.hierarchy.first), top)
				return top
			}, 0},
			{"a class of another's", func() uint64 {
				top := class(0, none)
				w.put64(class(top, one)+uint64(w.l.invoke.named.super), top+8)
				return top
			}, 0},
			{"no such place in the vtable of one", func() uint64 {
				top := class(0, none)
				class(top, one)
				w.put32(class(top, one)+uint64(w.l.invoke.vtableLen), place)
				return top
			}, 0},
			{"nothing to read", func() uint64 {
				top := class(0, none)
				w.put64(top+uint64(w.l.hierarchy.first), 0x7fff00000008)
				return top
			}, 0},
			{"not aligned", func() uint64 {
				top := class(0, none)
				class(top, one)
				w.put64(top+uint64(w.l.hierarchy.first), w.get64(t, top+uint64(w.l.hierarchy.first))+4)
				return top
			}, 0},
			{"no class", func() uint64 { return 0 }, 0},
		} {
			got := uint64(0)
			if m := newVM(w, w.l).onlyBelow(r.make(), place); m != nil {
				got = m.Addr
			}
			if got != r.want {
				t.Errorf("%s: %#x, not %#x", r.name, got, r.want)
			}
		}
	})
}

// TestDefaultMethods: a class that neither declares nor inherits such a method from a class has the one of an
// interface.
func TestDefaultMethods(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		l := &w.l.invoke.named
		method := w.method(w.class("app/Impl", "Impl.java"), 1, "run", "()V", nil)
		face := w.class("app/Face", "Face.java")
		other := w.method(face, 1, "run", "()V", nil)
		list := func(at, method uint64) {
			array := w.alloc(64)
			w.put32(array+uint64(w.l.method.arrayLen), 1)
			w.put64(array+uint64(l.data), method)
			w.put64(at, array)
		}
		name, signature := w.vm.symbolsOf(method)
		w.put64(face+w.l.method.poolSize+8, name) // there is only one copy of each symbol
		w.put64(face+w.l.method.poolSize+16, signature)
		super, klass := w.alloc(2048), w.alloc(2048)
		w.put64(klass+uint64(l.super), super)
		if got := w.vm.inheritedMethod(klass, name, signature); got != 0 {
			t.Errorf("no method: %#x", got)
		}
		list(super+uint64(l.defaults), other)
		if got := w.vm.inheritedMethod(klass, name, signature); got != other {
			t.Errorf("an interface's of the superclass: %#x, not %#x", got, other)
		}
		list(super+uint64(l.methods), method)
		list(klass+uint64(l.defaults), other)
		if got := w.vm.inheritedMethod(klass, name, signature); got != method {
			t.Errorf("a class's goes before an interface's: %#x, not %#x", got, method)
		}
	})
}
