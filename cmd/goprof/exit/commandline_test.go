package exit

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"goprof/output"
)

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
		word := CommandLine([]string{text})
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

func TestCommandLine(t *testing.T) {
	if got := CommandLine([]string{"goprof", "record", "-o", "my file", "it's", "",
		"--pid=7"}); got != `goprof record -o 'my file' 'it'\''s' '' --pid=7` {
		t.Error(got)
	}
}
