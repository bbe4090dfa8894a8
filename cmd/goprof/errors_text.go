//go:build linux

package main

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// printable makes text of a target fit for one line of a terminal: nothing in it can move
// the cursor, end the line, or lie about the order of what is shown (Unicode standard annex 9).
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == utf8.RuneError || unicode.Is(unicode.Bidi_Control, r) {
			return '?'
		}
		return r
	}, s)
}
