package jfr

import (
	"slices"
	"strings"
)

// metaElement is an element of the metadata, as it stands in the file.
type metaElement struct {
	kind       string
	attributes [][2]string
	children   []*metaElement
}

func (e *metaElement) attribute(name string) string {
	for _, a := range e.attributes {
		if a[0] == name {
			return a[1]
		}
	}
	return ""
}

// readElements reads a metadata event's body, behind its size and type.
func readElements(c *cursor) (root *metaElement, id uint64) {
	c.int() // start
	c.int() // duration
	id = c.int()
	var words []string
	for range c.count(1) {
		words = append(words, c.text(false).s)
	}
	p := schemaParser{cursor: c, words: words}
	return p.tree(0), id
}

func (p *schemaParser) tree(depth int) *metaElement {
	if depth > maxElementDepth {
		p.fail("metadata more than %d deep", maxElementDepth)
	}
	e := &metaElement{kind: p.word()}
	for range p.count(2) {
		key := p.word()
		e.attributes = append(e.attributes, [2]string{key, p.word()})
	}
	for range p.count(4) {
		if p.bad != nil {
			break
		}
		e.children = append(e.children, p.tree(depth+1))
	}
	return e
}

// keptTypes is the metadata without types that are not listed.
type keptTypes struct {
	root    *metaElement
	classes map[int64]bool
}

// keepTypes leaves out classes that are not listed, and all fields, annotations and settings of such classes.
func keepTypes(root *metaElement) *keptTypes {
	k := &keptTypes{classes: make(map[int64]bool)}
	k.each(root, func(class *metaElement) {
		if keepsClass(class.attribute("name"), class.attribute("superType")) {
			k.classes[typeNumber(class.attribute("id"))] = true
		}
	})
	k.root = k.filter(root)
	return k
}

func (k *keptTypes) each(e *metaElement, visit func(*metaElement)) {
	if e.kind == "class" {
		visit(e)
	}
	for _, child := range e.children {
		k.each(child, visit)
	}
}

// filter copies an element without the parts that are left out.
func (k *keptTypes) filter(e *metaElement) *metaElement {
	out := &metaElement{kind: e.kind}
	for _, a := range e.attributes {
		if kept, ok := keptAttribute(e.kind, a[0], a[1]); ok {
			out.attributes = append(out.attributes, [2]string{a[0], kept})
		}
	}
	for _, child := range e.children {
		if k.keeps(child) {
			out.children = append(out.children, k.filter(child))
		}
	}
	return out
}

func (k *keptTypes) keeps(e *metaElement) bool {
	switch e.kind {
	case "class":
		return k.classes[typeNumber(e.attribute("id"))]
	case "field":
		return k.keepsField(e.attribute("name"), typeNumber(e.attribute("class")))
	case "annotation", "setting":
		return k.classes[typeNumber(e.attribute("class"))]
	case "metadata", "region":
		return true
	}
	return false
}

// maxFieldName is how long the name of a field is that stays.
const maxFieldName = 48

// keepsField reports whether a field stays: it is of a type that does, and called as the JDK calls fields.
func (k *keptTypes) keepsField(name string, of int64) bool {
	return k.classes[of] && len(name) <= maxFieldName && isIdentifier(name)
}

func isIdentifier(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
}

// keptAttribute is what stays of an attribute. A region says where the machine stands.
func keptAttribute(kind, name, value string) (string, bool) {
	if kind == "region" {
		return value, name == "gmtOffset"
	}
	return value, true
}

// event writes the metadata event.
func (k *keptTypes) event(start int64, id uint64) []byte {
	words := map[string]uint64{}
	var list []string
	index := func(word string) uint64 {
		n, ok := words[word]
		if !ok {
			n = uint64(len(list))
			words[word], list = n, append(list, word)
		}
		return n
	}
	tree := k.root.append(nil, index)
	b := appendInt(nil, uint64(typeMetadata))
	b = appendInt(b, uint64(start))
	b = appendInt(b, 0) // duration
	b = appendInt(b, id)
	b = appendInt(b, uint64(len(list)))
	for _, word := range list {
		b = appendText(b, word)
	}
	return appendEvent(nil, append(b, tree...))
}

func (e *metaElement) append(b []byte, index func(string) uint64) []byte {
	b = appendInt(b, index(e.kind))
	b = appendInt(b, uint64(len(e.attributes)))
	for _, a := range e.attributes {
		b = appendInt(b, index(a[0]))
		b = appendInt(b, index(a[1]))
	}
	b = appendInt(b, uint64(len(e.children)))
	for _, child := range e.children {
		b = child.append(b, index)
	}
	return b
}

// keepsClass reports whether a type stays.
func keepsClass(name, super string) bool {
	if super == superEvent {
		return keptEvents[name]
	}
	if _, primitive := forms[name]; primitive {
		return true
	}
	if len(name) > 2*maxFieldName || !isIdentifier(strings.ReplaceAll(strings.ReplaceAll(name, ".", "_"), "$", "_")) {
		return false
	}
	return slices.ContainsFunc(keptTypePrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}
