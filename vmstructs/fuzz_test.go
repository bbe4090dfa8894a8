package vmstructs

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"goprof/process"
)

// FuzzTables reads tables from arbitrary bytes, which are the target's whole memory.
func FuzzTables(f *testing.F) {
	seed := make([]byte, 0x400)
	put := func(at int, v uint64) { binary.LittleEndian.PutUint64(seed[at:], v) }
	vars := 0
	variable := func(v uint64) { put(vars, v); vars += 8 }
	for i, shape := range tableShapes { // all variables come first, as the lookup below expects
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

// sliceMemory is memory that begins at address 0.
type sliceMemory []byte

func (m sliceMemory) Read(addr uint64, p []byte) error {
	if addr > uint64(len(m)) {
		return process.ErrFault
	}
	// The last page is a whole page, like all others.
	if n := copy(p, m[addr:]); n < len(p) {
		if addr+uint64(len(p)) > (uint64(len(m))+pageSize-1)&^(pageSize-1) {
			return process.ErrFault
		}
		clear(p[n:])
	}
	return nil
}

func (m sliceMemory) ReadMany(rs []process.Range) {
	for i := range rs {
		rs[i].OK = m.Read(rs[i].Addr, rs[i].Buf) == nil
	}
}

// FuzzScopes decodes arbitrary debug information at every PcDesc, and searches in it.
func FuzzScopes(f *testing.F) {
	for _, b := range capturedDebugInfo {
		f.Add([]byte(b.pcs), []byte(b.scopes), b.methods, b.x)
	}
	f.Fuzz(func(t *testing.T, pcs, scopes []byte, methods uint16, x uint8) {
		d := debugInfo{pcs: pcs[:len(pcs)&^(pcDescSize-1)], scopes: scopes, metadata: make([]byte, 8*int(methods))}
		sorted := true
		for i := range d.count() {
			sorted = sorted && (i == 0 || d.pcOffset(i-1) < d.pcOffset(i))
		}
		reader := inliningReader{b: &Blob{debug: d}, x: x, seen: new(scopeCache), tree: NewSiteTable(0)}
		for i := range d.count() {
			reader.site(d.scopeOffset(i), 0)
		}
		if reader.tree.n > reader.decoded {
			t.Fatalf("%d sites of %d scopes", reader.tree.n, reader.decoded)
		}
		for i := range d.count() {
			for _, rel := range []int32{d.pcOffset(i), d.pcOffset(i) + 1} {
				for _, exact := range []bool{true, false} {
					n := d.find(rel, exact)
					if n >= d.count() || sorted && n != slowFind(&d, rel, exact) {
						t.Fatalf("record %d of %d for %d (%v)", n, d.count(), rel, exact)
					}
				}
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

// slowFind looks at all records except the last, which only ends the table.
func slowFind(d *debugInfo, rel int32, exact bool) int {
	for i := range max(d.count()-1, 0) {
		if exact && d.pcOffset(i) == rel || int64(d.pcOffset(i)) > int64(rel) {
			return i
		}
	}
	return -1
}

// FuzzLines decodes arbitrary line tables, writes the decoded lines, and decodes these.
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
		if !ok || x > 1 || len(lines) == maxLineEntries {
			return
		}
		again, ok := decodeLines(appendLines(nil, lines, x), x)
		if !ok || !slices.Equal(again, lines) {
			t.Fatalf("%v, written and read %v", lines, again)
		}
	})
}

// appendLines writes a table as HotSpot does (code/compressedStream.cpp, CompressedLineNumberWriteStream).
func appendLines(b []byte, lines []lineEntry, x uint8) []byte {
	signed := func(v int32) { b = appendU5(b, uint32(v)<<1^uint32(v>>31), x) }
	bci, line := int32(0), int32(0)
	for _, e := range lines {
		db, dl := int32(e.bci)-bci, int32(e.line)-line
		bci, line = int32(e.bci), int32(e.line)
		if step := db<<3 | dl; db >= 0 && db < 32 && dl >= 0 && dl < 8 && step != 0 && step != 0xff {
			b = append(b, byte(step))
			continue
		}
		b = append(b, 0xff)
		signed(db)
		signed(dl)
	}
	return append(b, 0)
}

// FuzzUnsigned5 reads arbitrary bytes, and numbers that the test has written.
func FuzzUnsigned5(f *testing.F) {
	f.Add([]byte{0xc8, 0x02, 9}, uint32(191), uint8(0))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xbf}, uint32(1<<32-1), uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, v uint32, x uint8) {
		for s := (stream{b: b, x: x}); !s.bad && s.pos < len(b); {
			from := s.pos
			s.u5()
			if n := s.pos - from; n > unsigned5MaxBytes || n < 1 && !s.bad {
				t.Fatalf("%d bytes", n)
			}
		}
		s := stream{b: append(appendU5(nil, v, x&1), b...), x: x & 1}
		if got := s.u5(); got != v || s.bad || len(s.b)-s.pos != len(b) {
			t.Fatalf("%d is read as %d, %d bytes left of %d", v, got, len(s.b)-s.pos, len(b))
		}
	})
}

// FuzzNames decodes arbitrary bytes in each of the VM's encodings, and text that the test has encoded.
func FuzzNames(f *testing.F) {
	f.Add([]byte("java/lang/String"))
	f.Add([]byte("\u00e9t\u00e9-\u65e5\u672c-\U0001F600-\x00"))
	f.Add([]byte("a\xc0\x80b\xed\xa0\xbd\xed\xb8\x80!\xed\xb8\x80"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for name, text := range map[string]string{
			"modified UTF-8": modifiedUTF8(b), "Latin-1": latin1(b), "UTF-16": utf16LE(b), "C string": cleanText(string(b)),
		} {
			if !utf8.ValidString(text) {
				t.Fatalf("%s: %q", name, text)
			}
		}
		want := strings.ToValidUTF8(string(b), "\uFFFD")
		var modified, wide []byte
		for _, unit := range utf16.Encode([]rune(want)) {
			wide = binary.LittleEndian.AppendUint16(wide, unit)
			switch { // JVM specification, 4.4.7
			case unit != 0 && unit < 0x80:
				modified = append(modified, byte(unit))
			case unit < 0x800:
				modified = append(modified, 0xc0|byte(unit>>6), 0x80|byte(unit&0x3f))
			default:
				modified = append(modified, 0xe0|byte(unit>>12), 0x80|byte(unit>>6&0x3f), 0x80|byte(unit&0x3f))
			}
		}
		if got := modifiedUTF8(modified); got != want {
			t.Fatalf("modified UTF-8 of %q is read as %q", want, got)
		}
		if got := utf16LE(wide); got != want {
			t.Fatalf("UTF-16 of %q is read as %q", want, got)
		}
	})
}

// FuzzSegmentMap looks up blocks in arbitrary segment maps, and compares the results with a search that takes one step
// at a time.
func FuzzSegmentMap(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 0, 1, 0xff, 0xff, 0, 1, 1, 2}, uint16(11))
	long := make([]byte, 2000)
	for i := range long {
		long[i] = byte(min(i, 1+i%254))
	}
	f.Add(long, uint16(1999))
	f.Fuzz(func(t *testing.T, segmap []byte, at uint16) {
		if len(segmap) == 0 || len(segmap) > 1<<16 {
			return
		}
		const low = 1 << 32
		seg := uint64(at) % uint64(len(segmap))
		h := &codeHeap{low: low, high: low + uint64(len(segmap))<<7, segmap: 0, log2: 7}
		var window [segmapChunk]byte
		got, err := findBlock(sliceMemory(segmap), h, low+seg<<7+5, window[:])
		i, ok := int(seg), segmap[seg] != segmentFree
		for ok && segmap[i] != 0 {
			hop := int(segmap[i])
			ok = hop <= i && hop != segmentFree
			i -= hop
		}
		if ok != (err == nil) || ok && got != low+uint64(i)<<7 {
			t.Fatalf("segment %d: block at %#x (%v), by hand %d (%v)", seg, got, err, i, ok)
		}
	})
}
