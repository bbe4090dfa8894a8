package redact

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash"
	"strings"
)

// The letter that a pseudonym begins with says what kind of word it stands for.
const (
	kindPackage = 'p'
	kindClass   = 'C'
	kindMethod  = 'm'
	kindThread  = 't'
	kindFile    = 'f'
	kindLibrary = 'L'
	kindNative  = 'x'
	kindNumber  = 'n'
	kindWord    = 'w'
)

// The rest of a pseudonym is digits and letters in turn, so that it is no word of any language, and no two letters of a
// word stand together in it. 200^6 of them make two equal ones unlikely: 1 in 13,000 among 100,000 words.
const (
	pseudonymPairs   = 6
	pseudonymLetters = "bcdfghjkmnpqrstvwxyz"
	pseudonymDigits  = "0123456789"
)

// PseudonymLength is that of all pseudonyms, in bytes.
const PseudonymLength = 1 + 2*pseudonymPairs

// KeySize is how many bytes a key should have at least.
const KeySize = 16

// hasher makes pseudonyms.
type hasher struct {
	mac  hash.Hash
	kept map[string]string // digits and letters by word
	told func(pseudonym, word string)
}

// maxKept bounds how many words are remembered, of some 100 bytes each.
const maxKept = 1 << 18

func newHasher(key []byte) hasher {
	return hasher{mac: hmac.New(sha256.New, key), kept: make(map[string]string)}
}

// of is the pseudonym of a word: the same for all kinds but for the first letter.
func (h *hasher) of(kind byte, word string) string {
	rest, ok := h.kept[word]
	if !ok {
		if len(h.kept) >= maxKept {
			clear(h.kept)
		}
		rest = h.make(word)
		h.kept[strings.Clone(word)] = rest
	}
	p := string(kind) + rest
	if h.told != nil {
		h.told(p, word)
	}
	return p
}

// make hashes a word, anew as long as four characters of the word stand in the pseudonym.
func (h *hasher) make(word string) (p string) {
	for try := byte(0); ; try++ {
		h.mac.Reset()
		h.mac.Write([]byte(word))
		h.mac.Write([]byte{0, try})
		p = spell(h.mac.Sum(nil))
		if !shares(p, word) || try == 255 {
			return p
		}
	}
}

// spell writes the beginning of a sum. 65,536 is no multiple of 200, which makes some pairs more likely by a third of a
// percent: that is of no use to anybody.
func spell(sum []byte) string {
	var b strings.Builder
	for i := range pseudonymPairs {
		n := int(sum[2*i])<<8 | int(sum[2*i+1])
		b.WriteByte(pseudonymDigits[n%10])
		b.WriteByte(pseudonymLetters[n/10%20])
	}
	return b.String()
}

// leastShared is how many characters in a row give a word away.
const leastShared = 4

// shares reports whether so many characters of a word stand in a pseudonym.
func shares(p, word string) bool {
	word = strings.ToLower(word)
	for i := 0; i+leastShared <= len(p); i++ {
		if strings.Contains(word, p[i:i+leastShared]) {
			return true
		}
	}
	return false
}
