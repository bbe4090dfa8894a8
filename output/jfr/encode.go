package jfr

import (
	"math/bits"
	"strings"
	"unicode/utf8"
)

// How strings are encoded (jdk.jfr.internal.consumer.StringParser).
const (
	stringNull   = 0
	stringEmpty  = 1
	stringPool   = 2 // a key of the pool of strings follows
	stringUTF8   = 3
	stringChars  = 4 // UTF-16, each char as a number
	stringLatin1 = 5
)

// maxString bounds the bytes of a written name.
const maxString = 8 << 10

// appendInt appends a number of up to 64 bits: seven bits in each byte, the lowest first, and all eight in the ninth.
func appendInt(b []byte, v uint64) []byte {
	for range 8 {
		if v < 0x80 {
			return append(b, byte(v))
		}
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// sizeOfInt returns how many bytes appendInt appends.
func sizeOfInt(v uint64) int { return min(max((bits.Len64(v)+6)/7, 1), 9) }

// appendInt32 appends a number of 32 bits; a negative one takes five bytes.
func appendInt32(b []byte, v int32) []byte { return appendInt(b, uint64(uint32(v))) }

// appendText appends a string that is never null, as in a Symbol.
func appendText(b []byte, s string) []byte {
	s = cut(s)
	b = appendInt(append(b, stringUTF8), uint64(len(s)))
	return append(b, s...)
}

// appendString appends a string. An empty one is null, "not known".
func appendString(b []byte, s string) []byte {
	if s == "" {
		return append(b, stringNull)
	}
	return appendText(b, s)
}

// cut makes a target's text valid UTF-8 of a bounded length.
func cut(s string) string {
	if len(s) > maxString {
		end := maxString
		for end > maxString-utf8.UTFMax && !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end]
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return s
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// appendEvent appends a body with its size before it. The size includes its own bytes.
func appendEvent(b, body []byte) []byte {
	return append(appendEventSize(b, len(body)), body...)
}

func appendEventSize(b []byte, n int) []byte {
	body := uint64(n)
	size := body + uint64(sizeOfInt(body+1))
	if s := body + uint64(sizeOfInt(size)); s != size {
		size = s
	}
	return appendInt(b, size)
}
