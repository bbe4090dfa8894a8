//go:build linux

package main

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"goprof/output"
)

// FuzzDuration: text that is understood is a time that goes on. Its printed form is understood again.
func FuzzDuration(f *testing.F) {
	for _, text := range []string{"30s", "2.5s", "5m", "30", "0.5", "1h30m", "", "-1", "1e300", "NaN", "0x10", "1_0", "+5",
		"9223372036s", ".5", "1e-9"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var d durationFlag
		if err := d.Set(text); err != nil {
			if d.Duration != 0 {
				t.Fatalf("%q: %v and %v", text, d.Duration, err)
			}
			return
		}
		if d.Duration <= 0 {
			t.Fatalf("%q is %v", text, d.Duration)
		}
		var again durationFlag
		if err := again.Set(d.String()); err != nil || again != d {
			t.Fatalf("%q is %v, and that is %v (%v)", text, d.Duration, again.Duration, err)
		}
		if plain, err := time.ParseDuration(text); err == nil && plain != d.Duration {
			t.Fatalf("%q is %v", text, d.Duration)
		}
	})
}

// FuzzPrintable: text of the target cannot steer a terminal. Text of the user cannot become a command of the shell
// that it is shown for.
func FuzzPrintable(f *testing.F) {
	for _, text := range []string{"main", "a\nb\x1b[31m\u202e\u2028\xff", "it's", "$(rm x) `y` \\", "", "--pid=7"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		shown := output.Printable(text)
		if utf8.RuneCountInString(shown) != utf8.RuneCountInString(text) || !utf8.ValidString(shown) ||
			strings.ContainsFunc(shown, func(r rune) bool {
				return unicode.IsControl(r) ||
					unicode.Is(unicode.Bidi_Control, r)
			}) {
			t.Fatalf("%q is shown as %q", text, shown)
		}
		word := commandLine([]string{text})
		if plainWord.MatchString(word) {
			if word != text {
				t.Fatalf("%q is %q", text, word)
			}
			return
		}
		// This reads the text as a shell does: quotes, and escaped quotes.
		var back strings.Builder
		for rest := word; rest != ""; {
			switch {
			case strings.HasPrefix(rest, `\'`):
				back.WriteByte('\'')
				rest = rest[2:]
			case rest[0] == '\'' && strings.IndexByte(rest[1:], '\'') >= 0:
				end := 1 + strings.IndexByte(rest[1:], '\'')
				back.WriteString(rest[1:end])
				rest = rest[end+1:]
			default:
				t.Fatalf("%q is quoted as %q", text, word)
			}
		}
		if back.String() != text {
			t.Fatalf("%q is quoted as %q, which is %q", text, word, back.String())
		}
	})
}
