package exit

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

func TestTell(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		code Code
		text string
	}{
		"none":  {nil, OK, ""},
		"plain": {errors.New("odd"), General, "goprof: odd\n"},
		"whole": {&Error{NotJVM, "cannot record 7", "it is no JVM", "goprof list", nil}, NotJVM,
			"goprof: cannot record 7: it is no JVM\ntry: goprof list\n"},
		"under": {&Error{Code: BadInput, What: "cannot read x", Err: fs.ErrNotExist}, BadInput,
			"goprof: cannot read x: file does not exist\n"},
		"wrapped": {fmt.Errorf("while: %w", &Error{Code: NoSamples, What: "no samples"}), NoSamples,
			"goprof: while: no samples\n"},
		"hostile": {&Error{Code: General, What: "a\x1b[2J\nb\u0085c"}, General, "goprof: a [2J b c\n"},
		"no code": {&Error{What: "an error is never a success"}, General, "goprof: an error is never a success\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			if code := Tell(&b, c.err); code != c.code || b.String() != c.text {
				t.Errorf("%d %q, want %d %q", code, b.String(), c.code, c.text)
			}
		})
	}
}

func TestCodes(t *testing.T) {
	seen := map[Code]bool{}
	for _, c := range Codes {
		if c.Code == 2 || seen[c.Code] || c.Meaning == "" {
			t.Errorf("code %d: %q", c.Code, c.Meaning)
		}
		seen[c.Code] = true
	}
	if !errors.Is(&Error{Err: fs.ErrExist}, fs.ErrExist) {
		t.Error("the error underneath is hidden")
	}
}
