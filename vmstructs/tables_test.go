package vmstructs

import (
	"errors"
	"strings"
	"testing"

	"goprof/process"
)

const (
	tableAt = 0x10000 // the addresses of fakeTables' arrays, one every 64 KB
	textAt  = 0x90000
	varsAt  = 0xf0000
)

// fakeTables writes the variables of the tables, and one array of each kind without entries.
func fakeTables() (*fakeTarget, func(string) (uint64, error)) {
	f := newFake()
	offsets := [4][]uint64{{0, 8, 16, 24, 32, 40}, {0, 32}, {0, 8}, {0, 8}}
	strides := [4]uint64{48, 40, 16, 16}
	at := uint64(varsAt)
	variable := func(name string, v uint64) {
		f.symbols[name] = at
		f.put64(at, v)
		at += 8
	}
	for i, shape := range tableShapes {
		variable(shape.array, tableAt*uint64(i+1))
		variable(shape.stride, strides[i])
		for k, name := range shape.offsets {
			variable(name, offsets[i][k])
		}
		f.put64(tableAt*uint64(i+1), 0)
	}
	return f, func(s string) (uint64, error) { return f.Global(libjvm, s) }
}

func TestReadTables(t *testing.T) {
	f, lookup := fakeTables()
	f.putString(textAt, "CodeBlob")
	f.putString(textAt+pageSize-3, "_name") // this text continues in the next page
	f.putString(textAt+0x20, "const char*")
	f.putString(textAt+0x40, "_heaps")
	f.putString(textAt+0x60, "CodeCache")
	f.put64(tableAt, textAt)
	f.put64(tableAt+8, textAt+pageSize-3)
	f.put64(tableAt+16, textAt+0x20)
	f.put64(tableAt+32, 96)
	f.put64(tableAt+48, textAt+0x60)
	f.put64(tableAt+56, textAt+0x40)
	f.put32(tableAt+48+24, 1)
	f.put64(tableAt+48+40, 0xabc0)
	f.put64(tableAt+96, 0) // the end
	f.put64(2*tableAt, textAt)
	f.put64(2*tableAt+32, 104)
	f.put64(2*tableAt+40, 0)
	f.put64(3*tableAt, textAt)
	f.put32(3*tableAt+8, 0xffffffff)
	f.put64(3*tableAt+16, 0)
	tab, err := readTables(f, lookup)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tab.fields[fieldName{"CodeBlob", "_name"}], (tableField{typ: "const char*", offset: 96}); got != want {
		t.Errorf("instance field %+v, want %+v", got, want)
	}
	if got, want := tab.fields[fieldName{"CodeCache", "_heaps"}], (tableField{addr: 0xabc0, static: true}); got != want {
		t.Errorf("static field %+v, want %+v", got, want)
	}
	if len(tab.fields) != 2 || tab.sizes["CodeBlob"] != 104 || tab.ints["CodeBlob"] != -1 || len(tab.longs) != 0 {
		t.Errorf("%+v", tab)
	}
}

func TestHostileTables(t *testing.T) {
	for _, c := range []struct {
		name string
		harm func(f *fakeTarget)
		want error
	}{
		{"strides not filled in yet", func(f *fakeTarget) { f.put64(f.symbols["gHotSpotVMStructEntryArrayStride"], 0) },
			ErrStarting},
		{"no array yet", func(f *fakeTarget) { f.put64(f.symbols["gHotSpotVMTypes"], 0) }, ErrStarting},
		{"huge stride", func(f *fakeTarget) { f.put64(f.symbols["gHotSpotVMStructEntryArrayStride"], 1<<40) }, ErrBadTables},
		{"odd stride", func(f *fakeTarget) { f.put64(f.symbols["gHotSpotVMStructEntryArrayStride"], 7) }, ErrBadTables},
		{"member outside the entry", func(f *fakeTarget) { f.put64(f.symbols["gHotSpotVMStructEntryOffsetOffset"], 1<<63) },
			ErrBadTables},
		{"array not mapped", func(f *fakeTarget) { f.put64(f.symbols["gHotSpotVMTypes"], 0xdead0000) }, process.ErrFault},
		{"no symbols", func(f *fakeTarget) { delete(f.symbols, "gHotSpotVMTypes") }, ErrNotHotSpot},
		{"no end", func(f *fakeTarget) {
			for a := uint64(tableAt); a < tableAt+(maxEntries+2)*48; a += 8 {
				f.put64(a, textAt)
			}
			f.put64(f.symbols["gHotSpotVMTypes"], tableAt*12)
			f.put64(tableAt*12, 0)
		}, ErrBadTables},
		{"runs off the mapping", func(f *fakeTarget) {
			for a := uint64(tableAt); a < tableAt+pageSize; a += 8 {
				f.put64(a, textAt)
			}
		}, process.ErrFault},
		{"names all over the address space", func(f *fakeTarget) {
			for i := range uint64(maxTextPage / 2) {
				f.put64(3*tableAt+48*i, 1<<40+2*i*pageSize)
				f.put64(3*tableAt+48*i+8, 2<<40+2*i*pageSize)
				f.put64(3*tableAt+48*i+16, 3<<40+2*i*pageSize)
			}
			f.put64(3*tableAt+48*maxTextPage/2, 0)
			f.put64(f.symbols["gHotSpotVMStructs"], 3*tableAt)
			f.put64(f.symbols["gHotSpotVMIntConstants"], 4*tableAt)
		}, ErrBadTables},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, lookup := fakeTables()
			c.harm(f)
			if _, err := readTables(f, lookup); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

// TestUnreadableNames: an entry with an unreadable name is left out, and the other entries are used.
func TestUnreadableNames(t *testing.T) {
	f, lookup := fakeTables()
	f.putString(textAt, "int")
	for a := uint64(textAt + 16); a < textAt+3*pageSize; a++ {
		f.put(a, 'x')
	}
	for i, name := range []uint64{textAt, 0xdead0000, textAt + 16, textAt + 3*pageSize - 3} {
		f.put64(2*tableAt+40*uint64(i), name)
		f.put64(2*tableAt+40*uint64(i)+32, 4)
		f.put64(2*tableAt+40*uint64(i)+40, 0)
	}
	tab, err := readTables(f, lookup)
	if err != nil {
		t.Fatal(err)
	}
	delete(tab.sizes, "")
	if len(tab.sizes) != 1 || tab.sizes["int"] != 4 {
		t.Errorf("%v", tab.sizes)
	}
	for name := range tab.sizes {
		if strings.Contains(name, "x") {
			t.Errorf("unterminated name %q", name)
		}
	}
}
