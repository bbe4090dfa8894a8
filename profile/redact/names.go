package redact

import (
	"strings"
	"unicode/utf8"
)

// Class redacts the name of a class: com.example.Shop, com/example/Shop, [Lcom/example/Shop;, int[].
func (r *Redactor) Class(name string) string {
	dims := len(name) - len(strings.TrimLeft(name, "["))
	if inner := name[dims:]; dims > 0 && dims <= 255 {
		if len(inner) == 1 && strings.Contains("ZBCSIJFD", inner) {
			return name
		}
		if of, ok := strings.CutPrefix(inner, "L"); ok && strings.HasSuffix(of, ";") {
			return name[:dims] + "L" + r.Class(of[:len(of)-1]) + ";"
		}
	}
	if base := strings.TrimRight(name, "[]"); primitives[base] {
		return base + strings.Repeat("[]", min(strings.Count(name[len(base):], "["), 255))
	}
	return r.java(name, false)
}

var primitives = setOf(`boolean byte char short int long float double void`)

// Method redacts the name of a method with its class: com.example.Shop.pay.
func (r *Redactor) Method(name string) string { return r.java(name, true) }

// MethodOf redacts only a method's name. class is the name of its class, not redacted.
func (r *Redactor) MethodOf(class, method string) string {
	if r.isOpen(class) && isIdentifier(method) {
		return r.withoutAddresses(method)
	}
	return r.part(method, kindMethod, methodWords)
}

// java redacts a qualified name, which may end in a method.
func (r *Redactor) java(name string, method bool) string {
	if r.isOpen(name) && isIdentifier(name) {
		return r.withoutAddresses(name)
	}
	stem := len(name) // a Kotlin or Scala name may have dots after its parameters
	if paren := strings.IndexAny(name, "( "); paren > 0 {
		stem = paren
	}
	class, call := 0, stem
	if method {
		if dot := strings.LastIndexByte(name[:stem], '.'); dot >= 0 {
			call = dot + 1
		} else {
			call = 0
		}
	}
	if end := lastSeparator(name[:max(call-1, 0)]); method && end >= 0 {
		class = end + 1
	} else if end := lastSeparator(name[:stem]); !method && end >= 0 {
		class = end + 1
	}
	if !method {
		call = len(name)
	}
	var b strings.Builder
	b.WriteString(r.packages(name[:class]))
	b.WriteString(r.part(name[class:call], kindClass, classWords))
	b.WriteString(r.part(name[call:], kindMethod, methodWords))
	return b.String()
}

// lastSeparator returns the last dot or slash before a name. A hidden class has a slash before a number.
func lastSeparator(text string) int {
	for i := len(text) - 2; i >= 0; i-- {
		if (text[i] == '.' || text[i] == '/') && (text[i+1] < '0' || text[i+1] > '9') {
			return i
		}
	}
	return -1
}

// Package redacts a package's name, with dots or slashes.
func (r *Redactor) Package(name string) string {
	if r.isOpen(name) && isIdentifier(name) {
		return name
	}
	return r.packages(name)
}

func (r *Redactor) packages(name string) string {
	return each(name, func(word string, at int) string {
		if at == 0 && topLevels[word] {
			return word
		}
		return r.word(word, kindPackage, nil)
	})
}

func (r *Redactor) part(text string, kind byte, list map[string]bool) string {
	return each(text, func(word string, _ int) string { return r.word(word, kind, list) })
}

// word returns one word, or its pseudonym.
func (r *Redactor) word(word string, kind byte, list map[string]bool) string {
	if text, ok := r.number(word); ok {
		return text
	}
	if word == "_" || r.allowed(word, list) {
		return word
	}
	return r.hash.of(kind, word)
}

// isOpen reports whether a name belongs to a package that the policy allows. Its separators may be slashes.
func (r *Redactor) isOpen(name string) bool {
	return below(name, r.open) && !below(name, r.denied)
}

func below(name string, packages []string) bool {
	for _, p := range packages {
		if len(name) < len(p) || len(name) > len(p) && name[len(p)] != '.' && name[len(p)] != '/' {
			continue
		}
		if strings.ReplaceAll(name[:len(p)], "/", ".") == p {
			return true
		}
	}
	return false
}

// maxName bounds the length of an allowed name. javac's limit is far above real names.
const maxName = 1 << 10

// isIdentifier reports whether a name only has characters of Java names in the spelling of the JVM and goprof. In an
// allowed package, a name with other characters may be any text.
func isIdentifier(name string) bool {
	return len(name) <= maxName && !strings.ContainsFunc(name, func(c rune) bool {
		return c >= utf8.RuneSelf || !isWord(c) && !strings.ContainsRune("./$<>+[]-,()", c)
	})
}

// withoutAddresses removes long numbers from an allowed name: names of hidden classes contain addresses.
func (r *Redactor) withoutAddresses(name string) string {
	if !strings.ContainsAny(name, "0123456789") {
		return name
	}
	return each(name, func(word string, _ int) string {
		if _, isNumber := r.number(word); isNumber || strings.HasPrefix(word, "0x") {
			if len(word) > maxDigits {
				return r.hash.of(kindNumber, word)
			}
		}
		return word
	})
}

// Descriptor redacts the types of a method's parameters: (Lcom/example/Shop;I)V.
func (r *Redactor) Descriptor(text string) string {
	var b strings.Builder
	for at := 0; at < len(text); at++ {
		c := text[at]
		if c != 'L' {
			if !strings.ContainsRune("()[ZBCSIJFDV", rune(c)) {
				return b.String() // not a descriptor: the rest is removed
			}
			b.WriteByte(c)
			continue
		}
		end := strings.IndexByte(text[at:], ';')
		if end < 0 {
			return b.String()
		}
		b.WriteString("L" + r.Class(text[at+1:at+end]) + ";")
		at += end
	}
	return b.String()
}

// Source redacts the name of a source file: it gets the class's pseudonym and keeps its extension. open: the class
// stays readable.
func (r *Redactor) Source(file string, open bool) string {
	if file == "" || open && isIdentifier(file) && !strings.Contains(file, "/") {
		return file
	}
	base := file[strings.LastIndexAny(file, "/\\")+1:]
	stem, ext := base, ""
	if dot := strings.LastIndexByte(base, '.'); dot > 0 && sourceEnds[base[dot+1:]] {
		stem, ext = base[:dot], base[dot:]
	}
	return r.part(stem, kindClass, classWords) + ext
}

var sourceEnds = setOf(`java kt kts scala groovy clj rb js py c cc cpp h hpp rs go`)
