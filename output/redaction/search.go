package redaction

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"slices"
	"sort"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"goprof/output"
)

// Bounds of a search.
const (
	maxWords     = 100_000
	leastWord    = 3       // characters; shorter words are in every file
	maxSearched  = 4 << 30 // bytes of a file, including everything packed in it
	maxNested    = 4       // depth of packed data within packed data
	maxPieces    = 1 << 16 // base64 runs in a page, entries of a zip
	leastBase64  = 64      // characters
	maxWordBytes = 1 << 10
)

// Words reads a list of words, one in each line; '#' begins a comment. Case does not matter.
func Words(from io.Reader) (words []string, err error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 4<<10), maxWordBytes)
	for lines.Scan() {
		word := strings.TrimSpace(lines.Text())
		if word == "" || strings.HasPrefix(word, "#") {
			continue
		}
		if utf8.RuneCountInString(word) < leastWord {
			return nil, fmt.Errorf("%q is too short: words of %d characters and more can be looked for", word,
				leastWord)
		}
		if words = append(words, word); len(words) > maxWords {
			return nil, fmt.Errorf("more than %d words", maxWords)
		}
	}
	return words, lines.Err()
}

// Left is a word that was found.
type Left struct {
	Word  string
	Where string // "in the file", "unpacked", "in base64"
}

// Search looks for words in a file's bytes and in everything that is packed in them: gzip, zip, base64, and names that
// a page shortens. It looks for each word as UTF-8, Latin-1, UTF-16 and the numbers of JFR, and in the spellings of
// JSON, HTML and URLs. It returns each word once. At most some MB of the file are in memory (search_stream.go).
func Search(from io.Reader, words []string) ([]Left, error) { return searchBy(from, window, words...) }

func searchBy(from io.Reader, window int, words ...string) ([]Left, error) {
	s := &search{forms: formsOf(words), found: make(map[string]string), left: maxSearched, window: window,
		longest: len(beginNames)}
	for _, forms := range s.forms {
		for _, form := range forms {
			s.longest = max(s.longest, len(form))
		}
	}
	if err := s.stream(from, "in the file", 0); err != nil {
		return nil, err
	}
	var all []Left
	for word, where := range s.found {
		all = append(all, Left{word, where})
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Word < all[j].Word })
	if s.deep {
		return all, fmt.Errorf("there is more packed in the file than is searched")
	}
	return all, nil
}

type search struct {
	forms  map[string][][]byte // by word, in lower case
	found  map[string]string
	left   int64
	deep   bool
	window int // size of a piece that is searched at once
	// longest is the length in bytes of the longest text that a window must not cut: forms, and the text before a page's
	// names.
	longest int
}

func formsOf(words []string) map[string][][]byte {
	forms := make(map[string][][]byte)
	for _, word := range words {
		lower := strings.ToLower(word)
		units := utf16.Encode([]rune(lower))
		var little, big, numbers, latin []byte
		for _, u := range units {
			little = append(little, byte(u), byte(u>>8))
			big = append(big, byte(u>>8), byte(u))
			for ; u >= 0x80; u >>= 7 {
				numbers = append(numbers, byte(u)|0x80)
			}
			numbers = append(numbers, byte(u))
		}
		for _, c := range lower {
			if c < 256 {
				latin = append(latin, byte(c))
			} else {
				latin = append(latin, lower...) // it has no such form
			}
		}
		quoted, _ := json.Marshal(lower)
		ascii := fmt.Sprintf("%+q", lower)
		all := [][]byte{[]byte(lower), little, big, numbers, latin, quoted[1 : len(quoted)-1],
			[]byte(ascii[1 : len(ascii)-1]),
			[]byte(output.EscapeHTML(lower)), []byte(strings.ToLower(url.QueryEscape(lower))),
			[]byte(strings.ToLower(url.PathEscape(lower))), []byte(strings.ReplaceAll(lower, ".", "/"))}
		sort.Slice(all, func(i, j int) bool { return bytes.Compare(all[i], all[j]) < 0 })
		forms[word] = slices.CompactFunc(all, bytes.Equal)
	}
	return forms
}

// in searches data, and everything that is packed in them.
func (s *search) in(data []byte, where string, depth int) {
	if s.left -= int64(len(data)); s.left < 0 {
		s.deep = true
		return
	}
	s.look(data, where)
	if depth > maxNested {
		s.deep = true
		return
	}
	s.gzip(data, depth)
	s.zip(data, depth)
	s.base64(data, depth)
	s.names(data)
}

func (s *search) names(data []byte) {
	if names := frontCoded(data); names != nil {
		s.look(names, "in a page's names")
	}
}

func (s *search) look(data []byte, where string) {
	lower := lowerASCII(data)
	for word, forms := range s.forms {
		if s.found[word] != "" {
			continue
		}
		for _, form := range forms {
			if bytes.Contains(lower, form) {
				s.found[word] = where
				break
			}
		}
	}
}

// lowerASCII converts capital letters to small ones, including those of UTF-8 if the data are text.
func lowerASCII(data []byte) []byte {
	out := make([]byte, len(data))
	for i, c := range data {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		out[i] = c
	}
	if text := wholeRunes(data); utf8.Valid(text) {
		return bytes.ToLower(text)
	}
	return out
}

// wholeRunes removes runes that the ends of a window have cut.
func wholeRunes(data []byte) []byte {
	for n := 0; n < utf8.UTFMax-1 && len(data) > 0 && !utf8.RuneStart(data[0]); n++ {
		data = data[1:]
	}
	for n := 1; n < utf8.UTFMax && n <= len(data); n++ {
		if at := len(data) - n; utf8.RuneStart(data[at]) {
			if !utf8.FullRune(data[at:]) {
				data = data[:at]
			}
			break
		}
	}
	return data
}

// unpack reads packed data to its end, or to the first damaged byte.
func (s *search) unpack(from io.Reader, depth int) {
	_ = s.stream(&toDamage{from}, "unpacked", depth+1) // damaged data end at the damage
}

func (s *search) gzip(data []byte, depth int) {
	if !isGzip(data) {
		return
	}
	if z, err := gzip.NewReader(bytes.NewReader(data)); err == nil {
		s.unpack(z, depth)
	}
}

func (s *search) zip(data []byte, depth int) {
	if !bytes.HasPrefix(data, []byte("PK\x03\x04")) {
		return
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return
	}
	for i, f := range z.File {
		if i > maxPieces {
			s.deep = true
			return
		}
		s.look([]byte(f.Name+"\n"+f.Comment), "in a name of a zip")
		if r, err := f.Open(); err == nil {
			s.unpack(r, depth)
			r.Close()
		}
	}
}

// base64Runs returns the runs that may be base64, in either alphabet, without padding.
func base64Runs(data []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		// Every long enough run has a character at a multiple of the least length.
		for at := leastBase64 - 1; at < len(data); at += leastBase64 {
			if !isBase64[data[at]] {
				continue
			}
			from, to := at, at+1
			for from > 0 && isBase64[data[from-1]] {
				from--
			}
			for to < len(data) && isBase64[data[to]] {
				to++
			}
			if to-from >= leastBase64 && !yield(data[from:to]) {
				return
			}
			at = max(at, to-to%leastBase64-1)
		}
	}
}

var isBase64 = func() (is [256]bool) {
	for _, c := range []byte(digits64 + "-_") {
		is[c] = true
	}
	return is
}()

func (s *search) base64(data []byte, depth int) {
	i := 0
	for found := range base64Runs(data) {
		i++
		if i > maxPieces {
			s.deep = true
			return
		}
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			out := make([]byte, e.DecodedLen(len(found)))
			whole := found
			if len(found)%4 == 1 { // no number of bytes has this length
				whole = found[:len(found)-1]
			}
			n, _ := e.Decode(out, whole)
			if n == 0 {
				continue
			}
			s.in(out[:n], "in base64", depth+1)
			s.deflated(out[:n])
		}
	}
}

// deflated searches data that are packed without a header, as in pages.
func (s *search) deflated(data []byte) {
	// An error only means that the data are not packed.
	_ = s.stream(&toDamage{flate.NewReader(bytes.NewReader(data))}, "in base64", maxNested)
}

// frontCoded returns the names of a goprof page, or nil if there are none. On the page, each name begins with a digit
// for how much of the previous name it repeats (output/flame).
func frontCoded(data []byte) []byte {
	var out []byte
	for at := bytes.Index(data, []byte(beginNames)); at >= 0; {
		var names []string
		from := data[at+len(beginNames)-1:]
		if json.NewDecoder(bytes.NewReader(from)).Decode(&names) == nil {
			out = append(out, whole(names)...)
		}
		next := bytes.Index(from[1:], []byte(beginNames))
		if next < 0 {
			break
		}
		at += len(beginNames) + next
	}
	return out
}

const beginNames = `"names":[`

// namesEnd reports whether the names that begin here also end here, or are not names.
func namesEnd(data []byte) bool {
	var names []string
	err := json.NewDecoder(bytes.NewReader(data[len(beginNames)-1:])).Decode(&names)
	return err == nil || !errors.Is(err, io.ErrUnexpectedEOF)
}

const digits64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// whole returns full names from names without their common beginnings.
func whole(names []string) (out []byte) {
	last := ""
	for _, n := range names {
		if n == "" {
			continue
		}
		shared := strings.IndexByte(digits64, n[0])
		if shared < 0 || shared > len(last) {
			shared = 0
		}
		last = last[:shared] + n[1:]
		out = append(append(out, last...), '\n')
	}
	return out
}
