package vmstructs

import (
	"testing"
	"unicode/utf8"
)

func TestModifiedUTF8(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"ASCII", "java/lang/String", "java/lang/String"},
		{"two and three bytes", "\u00e9t\u00e9-\u65e5\u672c", "\u00e9t\u00e9-\u65e5\u672c"},
		{"zero is two bytes", "a\xc0\x80b", "a\x00b"},
		{"surrogate pair", "\xed\xa0\xbd\xed\xb8\x80!", "\U0001F600!"},
		{"half of a pair", "x\xed\xa0\xbdy", "x\uFFFDy"},
		{"low half alone", "\xed\xb8\x80", "\uFFFD"},
		{"two high halves", "\xed\xa0\xbd\xed\xa0\xbd\xed\xb8\x80", "\uFFFD\U0001F600"},
		{"stray bytes", "\x80\xff", "\uFFFD\uFFFD"},
		{"cut short", "a\xe6\x97", "a\uFFFD\uFFFD"},
		{"four bytes are not modified UTF-8", "\xf0\x9f\x98\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
	} {
		got := modifiedUTF8([]byte(c.in))
		if got != c.want || !utf8.ValidString(got) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestJavaStrings(t *testing.T) {
	if got := latin1([]byte{'c', 'a', 'f', 0xe9}); got != "caf\u00e9" {
		t.Errorf("Latin-1: %q", got)
	}
	if got := utf16LE([]byte{0xe5, 0x65, 0x3d, 0xd8, 0x00, 0xde, 0x00, 0xd8}); got != "\u65e5\U0001F600\uFFFD" {
		t.Errorf("UTF-16: %q", got)
	}
}
