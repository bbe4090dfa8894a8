package wire

import (
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"os"
	"strings"

	"goprof/output/ship"
)

const maxHeaderFile = 64 << 10

// headerFile is a file of lines "Name: value". Empty lines, and lines that begin with #, are ignored.
type headerFile struct{ name string }

func (h *headerFile) read() (http.Header, error) {
	all := make(http.Header)
	if h.name == "" {
		return all, nil
	}
	f, err := os.Open(h.name)
	if err != nil {
		return nil, &ship.Failure{Err: fmt.Errorf("headers: %w", err)}
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxHeaderFile+1))
	if err == nil && len(data) > maxHeaderFile {
		err = fmt.Errorf("%s is longer than %d bytes", h.name, maxHeaderFile)
	}
	if err != nil {
		return nil, &ship.Failure{Err: fmt.Errorf("headers: %w", err)}
	}
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if !ok || !isToken(name) || !isValue(value) {
			// The line is not shown, because it may contain a password.
			return nil, &ship.Failure{Err: fmt.Errorf("headers: line %d of %s is no \"Name: value\"", number, h.name)}
		}
		all.Add(textproto.CanonicalMIMEHeaderKey(name), value)
	}
	return all, nil
}

// isToken reports whether a text may be a header's name (RFC 9110).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

func isValue(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' && s[i] != '\t' || s[i] == 0x7f {
			return false
		}
	}
	return true
}
