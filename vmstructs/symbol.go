package vmstructs

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// symbol is a name in the VM: a length and that many bytes of modified UTF-8 (oops/symbol.hpp). Symbols are counted and
// freed, so the bytes are a fact that must be proven.
type symbol struct {
	text string
	fact fact
}

// usualSymbol is the number of bytes of the first read. Most names are not longer.
const usualSymbol = 96

// readSymbol reads the symbol at addr. It returns an error if the bytes are not a name.
func (vm *VM) readSymbol(addr uint64) (symbol, error) {
	l := &vm.l.method
	if addr == 0 || addr%4 != 0 {
		return symbol{}, fmt.Errorf("%w: symbol at %#x", ErrBadMethod, addr)
	}
	begin := min(l.symLength, l.symBody)
	lengthAt, bodyAt := int(l.symLength-begin), int(l.symBody-begin)
	from := addr + uint64(begin)
	vm.methods.symbol = slices.Grow(vm.methods.symbol[:0], bodyAt+usualSymbol)
	buf := vm.methods.symbol[:bodyAt+usualSymbol]
	if vm.near.Bytes(from, buf) != nil {
		// The symbol may end directly before unmapped memory.
		if err := vm.near.Bytes(from, buf[:lengthAt+2]); err != nil {
			return symbol{}, err
		}
		buf = buf[:lengthAt+2]
	}
	n := int(binary.LittleEndian.Uint16(buf[lengthAt:]))
	want := make([]byte, bodyAt+n)
	if copy(want, buf) < len(want) {
		if err := vm.near.Bytes(from, want); err != nil {
			return symbol{}, err
		}
	}
	if !isModifiedUTF8(want[bodyAt:]) {
		return symbol{}, fmt.Errorf("%w: no name at %#x", ErrBadMethod, addr)
	}
	s := symbol{text: vm.methods.intern(want[bodyAt:]), fact: fact{addr: from, want: want}}
	if lengthAt+2 != bodyAt { // JDK 8 to 11 count references in between
		s.fact.parts = []part{{lengthAt, lengthAt + 2}, {bodyAt, bodyAt + n}}
	}
	return s, nil
}

// modifiedUTF8 converts the VM's encoding to valid UTF-8 (JVM specification, 4.4.7). In the VM's encoding zero takes
// two bytes, and a character that needs a surrogate pair in UTF-16 is written as that pair, three bytes for each half.
// Bytes that are not in this encoding become U+FFFD.
func modifiedUTF8(b []byte) string {
	if isASCII(b) {
		return string(b)
	}
	var out strings.Builder
	out.Grow(len(b))
	for len(b) > 0 {
		r, n := modifiedRune(b)
		if utf16.IsSurrogate(r) {
			pair := utf8.RuneError
			if low, k := modifiedRune(b[n:]); k > 0 {
				if pair = utf16.DecodeRune(r, low); pair != utf8.RuneError {
					n += k
				}
			}
			r = pair
		}
		out.WriteRune(r)
		b = b[n:]
	}
	return out.String()
}

// isModifiedUTF8 distinguishes a name from freed memory. A class may be unloaded before a walk has read its symbols,
// and new contents of that memory usually include zeros. The JVM refuses class files with names that are not in this
// encoding (classFileParser.cpp, verify_legal_utf8).
func isModifiedUTF8(b []byte) bool {
	for len(b) > 0 {
		r, n := modifiedRune(b)
		if b[0] == 0 || r == utf8.RuneError && n == 1 {
			return false
		}
		b = b[n:]
	}
	return true
}

// modifiedRune decodes one code unit of one to three bytes. It returns 0, 0 at the end, and RuneError, 1 for other
// bytes.
func modifiedRune(b []byte) (rune, int) {
	cont := func(i int) bool { return i < len(b) && b[i]&0xc0 == 0x80 }
	switch {
	case len(b) == 0:
		return 0, 0
	case b[0] < 0x80:
		return rune(b[0]), 1
	case b[0]&0xe0 == 0xc0 && cont(1):
		return rune(b[0]&0x1f)<<6 | rune(b[1]&0x3f), 2
	case b[0]&0xf0 == 0xe0 && cont(1) && cont(2):
		return rune(b[0]&0x0f)<<12 | rune(b[1]&0x3f)<<6 | rune(b[2]&0x3f), 3
	}
	return utf8.RuneError, 1
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

// cleanText converts a C string to valid UTF-8.
func cleanText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
