package redact

import (
	"regexp"
	"strings"

	"goprof/profile"
)

// kernelName is how many bytes of a thread's name the kernel keeps.
const kernelName = 15

// ThreadName redacts the name of a thread. Words of pools, servers and the JVM stay, and so do short numbers after
// them.
func (r *Redactor) ThreadName(name string) string {
	if r.isOpen(name) && isIdentifier(name) && isQualified(name) {
		return r.withoutAddresses(name) // the thread is named after a class
	}
	cut := len(name) == kernelName
	hidden := r.hideAddresses(name)
	return each(hidden, func(word string, at int) string {
		if r.isPseudonym(word) {
			return word
		}
		if cut && hidden == name && at+len(word) == len(name) && beginsOne(word, threadWords) {
			return word
		}
		return r.threadWord(word)
	})
}

// isQualified reports whether a text is a class with its package. Text that only begins like one is not: play.acme-7.
func isQualified(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	return len(last) < len(name) && last != "" && last[0] >= 'A' && last[0] <= 'Z' &&
		!strings.ContainsAny(name, "-+,()[]<>/")
}

// threadWord redacts a word of a thread's name. It redacts the parts of a camel-case word separately:
// nioEventLoopGroup.
func (r *Redactor) threadWord(word string) string {
	if text, ok := r.number(word); ok {
		return text
	}
	if r.allowedThread(word) {
		return word
	}
	for part := range camelParts(word) {
		if !r.allowedThread(part) {
			return r.hash.of(kindThread, word)
		}
	}
	return word
}

func (r *Redactor) allowedThread(word string) bool {
	return r.allowed(strings.ToLower(word), threadWords) || word == "_"
}

// camelParts returns the parts of a word that begin with a capital letter, or are between underscores.
func camelParts(word string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		from := 0
		for i := 1; i <= len(word); i++ {
			end := i == len(word) || word[i-1] == '_' || word[i] == '_' ||
				word[i] >= 'A' && word[i] <= 'Z' && (word[i-1] < 'A' || word[i-1] > 'Z')
			if end {
				if !yield(word[from:i]) {
					return
				}
				from = i
			}
		}
	}
}

// leastCut is the least length of a word's beginning if the kernel has cut the word.
const leastCut = 3

func beginsOne(word string, list map[string]bool) bool {
	word = strings.ToLower(word)
	if len(word) < leastCut {
		return false
	}
	for w := range list {
		if strings.HasPrefix(w, word) {
			return true
		}
	}
	return false
}

// Thread redacts both names of a thread.
func (r *Redactor) Thread(t profile.Thread) profile.Thread {
	t.Name, t.JavaName = r.ThreadName(t.Name), r.ThreadName(t.JavaName)
	return t
}

// These are recognised by their shape, in names of threads and in texts: mail addresses, URLs, addresses of machines,
// and digits in groups (numbers of cards, telephones, dates).
var addresses = regexp.MustCompile(`[A-Za-z0-9._%+\-]+@[A-Za-z0-9.\-]+|[a-z][a-z0-9+]*://[^\s"'<>]+|` +
	`[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?::[0-9]+)?|(?:[0-9A-Fa-f]{0,4}:){3,}[0-9A-Fa-f]{0,4}|[0-9]+(?:[-. /:][0-9]+){2,}|` +
	`[0-9]{3,}[-. /:][0-9]{3,}`)

// hideAddresses replaces each of them with a pseudonym.
func (r *Redactor) hideAddresses(text string) string {
	return addresses.ReplaceAllStringFunc(text, func(found string) string {
		return r.hash.of(kindNumber, found)
	})
}

func (r *Redactor) isPseudonym(word string) bool {
	if len(word) != PseudonymLength || !strings.ContainsRune("pCmtfLxnw", rune(word[0])) {
		return false
	}
	for i := 1; i < len(word); i++ {
		set := pseudonymDigits
		if i%2 == 0 {
			set = pseudonymLetters
		}
		if strings.IndexByte(set, word[i]) < 0 {
			return false
		}
	}
	return true
}
