package vmstructs

import (
	"encoding/binary"
	"testing"
)

func TestIsUnloadable(t *testing.T) {
	for class, want := range map[string]bool{
		"java.lang.Thread":       false,
		"java.util.HashMap$Node": false,
		"java.util.Arrays$1":     false,
		"app.Main":               true,
		"jdk.internal.reflect.GeneratedMethodAccessor7":       true,
		"java.lang.invoke.LambdaForm$MH+0x000001":             true,
		"java.lang.invoke.LambdaForm$DMH.1324_LambdaForm$DMH": true,
		"java.": true,
		"":      true,
	} {
		if isUnloadable(class) != want {
			t.Errorf("%q", class)
		}
	}
}

// TestSince: a proof holds since the moment at which the last of its parts was first seen.
func TestSince(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		at := int64(100)
		w.vm.SetClock(func() int64 { return at })
		b, err := w.vm.Blob(sample(w) + nmCodeAt + 64)
		if err != nil {
			t.Fatal(err)
		}
		p := w.vm.NewProof()
		since := func() int64 {
			p.Reset()
			p.Blob(b)
			if ok, err := p.Check(); !ok || err != nil {
				t.Fatal(ok, err)
			}
			return p.Since()
		}
		if at = 200; since() != 100 {
			t.Errorf("since %d, and it was read at 100", since())
		}
		w.put32(b.Addr+uint64(w.l.nm.compileID), 78)
		p.Reset()
		p.Blob(b)
		if ok, _ := p.Check(); ok {
			t.Fatal("another compile id is the same blob")
		}
		if b, err = w.vm.Blob(sample(w) + nmCodeAt + 64); err != nil {
			t.Fatal(err)
		}
		if at = 300; since() != 200 {
			t.Errorf("since %d, and the other one was read at 200", since())
		}
		p.Method(b.Method)
		if got := p.Since(); got < 1<<62 {
			t.Errorf("since %d: a method whose class may be unloaded and loaded again, and nobody counts", got)
		}
	})
}

// TestSinceOfWalks: walks that are proven together each have their own moment. Only false data is forgotten.
func TestSinceOfWalks(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		at := int64(100)
		w.vm.SetClock(func() int64 { return at })
		pc := sample(w) + nmCodeAt + 64
		first, err := w.vm.Blob(pc)
		if err != nil {
			t.Fatal(err)
		}
		at = 200
		scopes := map[int32][]fakeScope{8: {{1, 2}}}
		other := w.nmethod(60, 78, []uint64{first.Method.Addr}, scopes, []int32{8}) + nmCodeAt
		second, err := w.vm.Blob(other)
		if err != nil {
			t.Fatal(err)
		}
		p := w.vm.NewProof()
		note := func() bool {
			p.Reset()
			for _, walk := range [][]*Blob{{first}, {first, second}, {}, {first, first}} {
				for _, b := range walk {
					p.Blob(b)
				}
				p.End()
			}
			ok, err := p.Check()
			if err != nil {
				t.Fatal(err)
			}
			return ok
		}
		if !note() {
			t.Fatal("all is true")
		}
		for walk, want := range []int64{100, 200, 0, 100} {
			if got := p.SinceOf(walk); got != want {
				t.Errorf("walk %d: since %d, not %d", walk, got, want)
			}
		}
		w.put32(second.Addr+uint64(w.l.nm.compileID), 79)
		if note() {
			t.Error("another compile id is the same blob")
		}
		if b, err := w.vm.Blob(pc); err != nil || b != first {
			t.Errorf("what is true was forgotten: %v", err)
		}
		if b, err := w.vm.Blob(other); err != nil || b == second {
			t.Errorf("what is false was not forgotten: %v", err)
		}
	})
}

// counterIn returns the offset of a counter's value in an area of counters, 0 if it is not there.
func counterIn(area []byte, name string) int {
	a := counterArea{bytes: area}
	a.index()
	return a.at[name].at
}

func TestCounterIn(t *testing.T) {
	good := perfArea("sun.rt.other", unloadCounter)
	if at := counterIn(good, unloadCounter); at == 0 || good[at] != 1 {
		t.Errorf("found at %d", at)
	}
	for name, spoil := range map[string]func([]byte){
		"magic":       func(b []byte) { b[0]++ },
		"no entry":    func(b []byte) { b[perfEntries] = 1 },
		"far away":    func(b []byte) { b[perfEntryOffset+3] = 0x7f },
		"negative":    func(b []byte) { b[perfEntryOffset+3] = 0xff },
		"no length":   func(b []byte) { clear(b[perfPrologue : perfPrologue+4]) },
		"long":        func(b []byte) { b[perfPrologue+3] = 0x7f },
		"another end": func(b []byte) { b[len(b)-16-3]++ },
	} {
		b := append([]byte(nil), good...)
		spoil(b)
		if at := counterIn(b, unloadCounter); at != 0 {
			t.Errorf("%s: found at %d", name, at)
		}
	}
}

// perfArea makes an area with a counter for each name. The counter's value is its index.
func perfArea(names ...string) []byte {
	b := make([]byte, perfPrologue)
	binary.LittleEndian.PutUint32(b, perfMagic)
	binary.LittleEndian.PutUint32(b[perfEntryOffset:], perfPrologue)
	binary.LittleEndian.PutUint32(b[perfEntries:], uint32(len(names)))
	for i, name := range names {
		dataAt := (perfEntry + len(name) + 1 + 7) &^ 7
		entry := make([]byte, dataAt+8)
		binary.LittleEndian.PutUint32(entry, uint32(len(entry)))
		binary.LittleEndian.PutUint32(entry[perfNameOffset:], perfEntry)
		binary.LittleEndian.PutUint32(entry[perfDataOffset:], uint32(dataAt))
		entry[perfTypeOffset] = 'J'
		copy(entry[perfEntry:], name)
		entry[dataAt] = byte(i)
		b = append(b, entry...)
	}
	return b
}
