package redact

import (
	"path"
	"strings"
	"unicode/utf8"
)

// Redactor replaces names by a policy and a key.
type Redactor struct {
	policy *Policy
	hash   hasher
	words  map[string]bool // allowed everywhere by the policy
	denied []string
	open   []string
}

// New makes a Redactor. Recordings that were redacted with the same key can be compared.
func New(p *Policy, key []byte) *Redactor {
	r := &Redactor{policy: p, hash: newHasher(key), words: make(map[string]bool), open: p.Packages, denied: p.Denied}
	for _, w := range p.Words {
		r.words[strings.ToLower(w)] = true
	}
	return r
}

// Tell sets a function that gets each pseudonym with the word that it replaces, possibly more than once. With these
// pairs, the redaction can be reversed.
func (r *Redactor) Tell(told func(pseudonym, word string)) { r.hash.told = told }

// isWord reports whether a character belongs to a word. All characters beyond ASCII do, so that none of them stays.
func isWord(c rune) bool {
	return c >= utf8.RuneSelf || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' ||
		c < ' ' || c == 0x7f
}

// maxPunctuation bounds the consecutive characters of punctuation that stay: " && " in a command.
const maxPunctuation = 4

const maxWords = 1 << 16

// each cuts a text into words and separators, and replaces the words. It shortens long runs of punctuation.
func each(text string, replace func(word string, at int) string) string {
	var b strings.Builder
	words := 0
	for at := 0; at < len(text); {
		end := run(text, at)
		switch piece := text[at:end]; {
		case words > maxWords:
			return b.String()
		case isWord(firstRune(piece)):
			words++
			b.WriteString(replace(piece, at))
		default:
			b.WriteString(piece[:min(len(piece), maxPunctuation)])
		}
		at = end
	}
	return b.String()
}

// run returns the end of a run of characters that all belong to words, or all do not.
func run(text string, at int) int {
	first := isWord(firstRune(text[at:]))
	for end, c := range text[at:] {
		if isWord(c) != first {
			return at + end
		}
	}
	return len(text)
}

func firstRune(text string) rune {
	c, _ := utf8.DecodeRuneInString(text)
	return c
}

// maxDigits bounds the digits of a number that stays, such as a port or a thread's number in its pool.
const maxDigits = 4

// number redacts a word of digits. It replaces long numbers and addresses. ok is false if the word is not a number.
func (r *Redactor) number(word string) (text string, ok bool) {
	if digits, hex := strings.CutPrefix(word, "0x"); hex && isHex(digits) {
		return r.hash.of(kindNumber, word), true
	}
	for i := range len(word) {
		if word[i] < '0' || word[i] > '9' {
			return "", false
		}
	}
	if len(word) <= maxDigits {
		return word, true
	}
	return r.hash.of(kindNumber, word), true
}

// allowed reports whether a word stays because it is in one of the lists, alone or with a short number after it.
func (r *Redactor) allowed(word string, list map[string]bool) bool {
	stem := strings.TrimRight(word, "0123456789")
	if len(word)-len(stem) > maxDigits {
		return false
	}
	lower := strings.ToLower(stem)
	return stem == "" || list[stem] || list[word] || r.words[lower] || r.words[strings.ToLower(word)]
}

// library reports whether the name of a file of native code may stay.
func (r *Redactor) library(name string) bool {
	base := path.Base(name)
	base = strings.TrimSuffix(base, " (deleted)")
	for _, pattern := range r.policy.Libraries {
		if pattern == base {
			return true
		}
		if ok, _ := path.Match(pattern, base); ok && plain(base) {
			return true
		}
	}
	return false
}

// maxOpen bounds the length of a name that a pattern allows.
const maxOpen = 64

// plain reports whether a file's name looks like a library's: a pattern with '*' allows any text.
func plain(base string) bool {
	return len(base) <= maxOpen && !strings.ContainsFunc(base, func(c rune) bool {
		return c >= utf8.RuneSelf || !isWord(c) && !strings.ContainsRune(".-+[]", c)
	})
}
