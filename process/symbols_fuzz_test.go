package process

import (
	"bytes"
	"debug/elf"
	"testing"
)

// FuzzSymbols sorts and searches hostile symbol tables. It compares the result with a search through all symbols.
func FuzzSymbols(f *testing.F) {
	names := []byte("\x00outer\x00inner\x00label\x00$x\x00.L1\x00")
	raw := rawSym(1, elf.STT_FUNC, elf.STB_GLOBAL, 100, 50)
	raw = append(raw, rawSym(7, elf.STT_FUNC, elf.STB_LOCAL, 110, 5)...)
	raw = append(raw, rawSym(13, elf.STT_NOTYPE, elf.STB_LOCAL, 160, 0)...)
	raw = append(raw, rawSym(19, elf.STT_NOTYPE, elf.STB_LOCAL, 170, 0)...)
	f.Add(raw, names, uint64(112))
	f.Add(raw, names, uint64(165))
	f.Fuzz(func(t *testing.T, raw, names []byte, addr uint64) {
		if len(raw) > 64*symSize {
			return
		}
		table := &symtab{raw: raw[:len(raw)/symSize*symSize], names: names}
		table.order = &order{symbols: table.sorted(func(uint64) bool { return true })}
		for i := 1; i < len(table.order.symbols); i++ {
			if table.at(table.order.symbols[i-1]).value >= table.at(table.order.symbols[i]).value {
				t.Fatal("not in order")
			}
		}
		addrs := []uint64{addr}
		for i := range uint32(min(table.len(), 8)) {
			addrs = append(addrs, table.at(i).value, table.at(i).end()-1)
		}
		for _, addr := range addrs {
			if name, ok := table.lookup(addr); ok && !mayBeNamed(table, addr, name) {
				t.Fatalf("%#x is %q", addr, name)
			}
		}
		for _, name := range []string{"outer", "", string(names[:min(len(names), 5)])} {
			at, ok := table.find(name)
			if ok && bytes.IndexByte([]byte(name), 0) < 0 && !hasSymbol(table, name, at) {
				t.Fatalf("%q is at %#x", name, at)
			}
		}
	})
}

// mayBeNamed reports whether a symbol with this name may hold addr. A symbol without a size begins at addr or before
// it.
func mayBeNamed(table *symtab, addr uint64, name []byte) bool {
	for i := range uint32(table.len()) {
		s := table.at(i)
		if s.value <= addr && (s.size == 0 || addr < s.end()) && bytes.Equal(cstring(table.names, s.name), name) {
			return true
		}
	}
	return false
}

func hasSymbol(table *symtab, name string, at uint64) bool {
	for i := range uint32(table.len()) {
		if s := table.at(i); s.value == at && s.defined() && string(cstring(table.names, s.name)) == name {
			return true
		}
	}
	return false
}

// FuzzUnpackXZ unpacks hostile streams. The result is bounded, and the same each time.
func FuzzUnpackXZ(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		out, err := unpackXZ(b)
		if len(out) > maxMiniDebug+1 || err == nil && len(out) > maxMiniDebug {
			t.Fatalf("%d bytes of %d", len(out), len(b))
		}
		if mini, err := readELF(bytes.NewReader(out), int64(len(out)), nil); err == nil {
			if table := mini.readSymtab(".symtab"); table != nil {
				table.order = &order{symbols: table.sorted(func(uint64) bool { return true })}
			}
		}
	})
}

// FuzzNotes looks for build ids. It appends a note with an id, and expects to find that id.
func FuzzNotes(f *testing.F) {
	f.Add([]byte("\x04\x00\x00\x00\x10\x00\x00\x00\x01\x00\x00\x00GNU\x00\x00\x00\x00\x00\x03\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x04\x00\x00\x00\x14\x00\x00\x00\x03\x00\x00\x00GNU\x00\xa3\x7c\x5a\xf0\xbf\x0d\x17\x7a\x3b\x09\x0a\x26\xcb\x7f\xa1\x44\x1b\x2f\xb6\x2c"))
	f.Add([]byte("\x05\x00\x00\x00\x08\x00\x00\x00\x03\x00\x00\x00stap\x00\x00\x00\x00abcdefgh"))
	f.Fuzz(func(t *testing.T, b []byte) {
		id := findBuildID(b)
		if len(id) > maxBuildID {
			t.Fatalf("%d bytes", len(id))
		}
		if id != nil && !bytes.Contains(b, append([]byte("GNU\x00"), id...)) {
			t.Fatalf("%x is not there", id)
		}
		buildIDPath(id)
		// If the notes have a length that is a multiple of 4, they do not hide the note after them.
		own := []byte("\x04\x00\x00\x00\x04\x00\x00\x00\x03\x00\x00\x00GNU\x00\x01\x02\x03\x04")
		if id == nil && wholeNotes(b) && !bytes.Equal(findBuildID(append(b[:len(b):len(b)], own...)), own[16:]) {
			t.Fatal("a build id is not found")
		}
	})
}

// wholeNotes reports whether b is a list of notes, and nothing else.
func wholeNotes(b []byte) bool {
	for len(b) >= 12 {
		n := 12 + (uint64(b[0])|uint64(b[1])<<8|uint64(b[2])<<16|uint64(b[3])<<24+3)&^3
		n += (uint64(b[4]) | uint64(b[5])<<8 | uint64(b[6])<<16 | uint64(b[7])<<24 + 3) &^ 3
		if n > uint64(len(b)) {
			return false
		}
		b = b[n:]
	}
	return len(b) == 0
}
