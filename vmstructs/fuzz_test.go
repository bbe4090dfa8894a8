package vmstructs

import (
	"encoding/binary"
	"testing"

	"goprof/target"
)

// FuzzTables reads tables out of arbitrary bytes, which stand for all memory there is.
func FuzzTables(f *testing.F) {
	seed := make([]byte, 0x400)
	put := func(at int, v uint64) { binary.LittleEndian.PutUint64(seed[at:], v) }
	vars := 0
	variable := func(v uint64) { put(vars, v); vars += 8 }
	for i, shape := range tableShapes { // all variables first, as the lookup below has them
		variable(uint64(0x100 + 0x80*i))
		variable([4]uint64{48, 40, 16, 16}[i])
		for k := range shape.offsets {
			variable([4][]uint64{{0, 8, 16, 24, 32, 40}, {0, 32}, {0, 8}, {0, 8}}[i][k])
		}
	}
	copy(seed[0x300:], "CodeBlob\x00_name\x00const char*\x00InvocationEntryBci\x00")
	put(0x100, 0x300)
	put(0x108, 0x309)
	put(0x110, 0x30f)
	put(0x120, 96)
	put(0x180, 0x300)
	put(0x1a0, 104)
	put(0x200, 0x31b)
	put(0x208, 0xffffffff)
	f.Add(seed)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<20 {
			return
		}
		m := sliceMemory(b)
		at := uint64(0)
		tab, err := readTables(m, func(string) (uint64, error) { at += 8; return at - 8, nil })
		if err != nil {
			return
		}
		if len(tab.fields) > maxEntries || len(tab.sizes) > maxEntries {
			t.Fatalf("%d fields, %d types", len(tab.fields), len(tab.sizes))
		}
		for name := range tab.fields {
			if len(name.field) > maxText || len(name.typ) > maxText {
				t.Fatalf("name of %d bytes", len(name.field))
			}
		}
		l, _ := resolve(tab)
		if l.blob.span > 2*maxOffset || l.method.constSpan > 2*maxOffset {
			t.Fatalf("%+v", l.blob)
		}
	})
}

// sliceMemory is memory from address 0 on.
type sliceMemory []byte

func (m sliceMemory) Read(addr uint64, p []byte) error {
	if addr > uint64(len(m)) {
		return target.ErrFault
	}
	// The last page is whole, as all are.
	if n := copy(p, m[addr:]); n < len(p) {
		if addr+uint64(len(p)) > (uint64(len(m))+pageSize-1)&^(pageSize-1) {
			return target.ErrFault
		}
		clear(p[n:])
	}
	return nil
}

func (m sliceMemory) ReadMany(rs []target.Range) {
	for i := range rs {
		rs[i].OK = m.Read(rs[i].Addr, rs[i].Buf) == nil
	}
}

// FuzzScopes decodes arbitrary debug information at every PcDesc.
func FuzzScopes(f *testing.F) {
	for _, b := range capturedDebugInfo {
		f.Add([]byte(b.pcs), []byte(b.scopes), b.methods, b.x)
	}
	f.Fuzz(func(t *testing.T, pcs, scopes []byte, methods uint16, x uint8) {
		d := debugInfo{pcs: pcs[:len(pcs)&^(pcDescSize-1)], scopes: scopes, metadata: make([]byte, 8*int(methods))}
		for i := range d.count() {
			if n := d.find(d.pcOffset(i), i%2 == 0); n >= d.count() {
				t.Fatalf("record %d of %d", n, d.count())
			}
			got, err := d.decode(nil, d.scopeOffset(i), x)
			if err == nil && (len(got) == 0 || len(got) > maxInline) {
				t.Fatalf("%d scopes", len(got))
			}
			for _, s := range got {
				if s.bci < -1 || s.bci >= maxBCI {
					t.Fatalf("bci %d", s.bci)
				}
			}
		}
	})
}

// FuzzLines decodes arbitrary line tables.
func FuzzLines(f *testing.F) {
	for _, b := range capturedLines {
		f.Add([]byte(b.bytes), b.x)
	}
	f.Fuzz(func(t *testing.T, b []byte, x uint8) {
		lines, ok := decodeLines(b, x)
		if !ok && lines != nil || len(lines) > len(b) {
			t.Fatalf("%d lines of %d bytes", len(lines), len(b))
		}
		m := Method{lines: lines}
		for _, e := range lines {
			if m.Line(int32(e.bci)) < 0 {
				t.Fatal("negative line")
			}
		}
	})
}
