package redact

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash"
	"strings"
)

// The first letter of a pseudonym is the kind of the word that it replaces.
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

// The rest of a pseudonym alternates digits and letters, so that it is not a word of any language, and has no two
// consecutive letters of the original word. With 200^6 of them, two equal ones are unlikely: 1 in 13,000 among 100,000
// words.
const (
	pseudonymPairs   = 6
	pseudonymLetters = "bcdfghjkmnpqrstvwxyz"
	pseudonymDigits  = "0123456789"
)

// PseudonymLength is the length of all pseudonyms, in bytes.
const PseudonymLength = 1 + 2*pseudonymPairs

// KeySize is the least recommended size of a key in bytes.
const KeySize = 16

type hasher struct {
	mac  hash.Hash
	kept map[string]string // digits and letters by word
	told func(pseudonym, word string)
}

// maxKept bounds the remembered words, of some 100 bytes each.
const maxKept = 1 << 18

func newHasher(key []byte) hasher {
	return hasher{mac: hmac.New(sha256.New, key), kept: make(map[string]string)}
}

// of returns the pseudonym of a word. It only differs between kinds in the first letter.
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

// make hashes a word. It repeats the hash as long as the pseudonym contains four consecutive characters of the word.
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

// spell writes the beginning of a hash. 65,536 is not a multiple of 200. So some pairs are a third of a percent more
// likely, which helps no attacker.
func spell(sum []byte) string {
	var b strings.Builder
	for i := range pseudonymPairs {
		n := int(sum[2*i])<<8 | int(sum[2*i+1])
		b.WriteByte(pseudonymDigits[n%10])
		b.WriteByte(pseudonymLetters[n/10%20])
	}
	return b.String()
}

// leastShared is how many consecutive characters reveal a word.
const leastShared = 4

// shares reports whether a pseudonym contains leastShared consecutive characters of a word.
func shares(p, word string) bool {
	word = strings.ToLower(word)
	for i := 0; i+leastShared <= len(p); i++ {
		if strings.Contains(word, p[i:i+leastShared]) {
			return true
		}
	}
	return false
}
