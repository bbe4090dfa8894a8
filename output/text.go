package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Unsafe reports whether a character ends a line, moves a terminal's cursor, or changes the order of shown text:
// control characters (ISO 6429, with C1), line and paragraph separators, and the bidirectional formatting characters
// (Unicode standard annex 9).
func Unsafe(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}

// EscapeHTML escapes text for a page, as html.EscapeString does. Package html would add 60 kB of names for characters.
var EscapeHTML = strings.NewReplacer("&", "&amp;", "'", "&#39;", "<", "&lt;", ">", "&gt;", `"`, "&#34;").Replace

// Printable makes foreign text fit for one line of a terminal.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || Unsafe(r) {
			return '?'
		}
		return r
	}, s)
}

// WriteJSON writes JSON for people and programs. It also escapes characters that are unsafe on a terminal, although
// JSON does not require that.
func WriteJSON(to io.Writer, v any) error { return WriteJSONAt(to, v, "") }

// WriteJSONAt is WriteJSON in the middle of other JSON: it begins each line except the first with prefix.
func WriteJSONAt(to io.Writer, v any, prefix string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent(prefix, "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := to.Write(escapeUnsafe(b.Bytes()))
	return err
}

// escapeUnsafe escapes unsafe characters in JSON. Except for the line breaks of the indentation, these are only within
// strings. All of them have four hexadecimal digits.
func escapeUnsafe(text []byte) []byte {
	unsafe := func(r rune) bool { return r != '\n' && Unsafe(r) }
	if bytes.IndexFunc(text, unsafe) < 0 {
		return text
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		if unsafe(r) {
			fmt.Fprintf(&b, "\\u%04x", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.Bytes()
}
