package jfr

import (
	"strconv"
	"sync"
)

// element is a node of the metadata event: a name, attributes and children. All their strings are in one table.
type element struct {
	name       string
	attributes []string // key, value, key, value
	children   []*element
}

func (e *element) add(children ...*element) *element {
	e.children = append(e.children, children...)
	return e
}

func node(name string, attributes ...string) *element {
	return &element{name: name, attributes: attributes}
}

// attribute returns the value of a key. It is empty if there is none.
func (e *element) attribute(key string) string {
	for i := 0; i < len(e.attributes); i += 2 {
		if e.attributes[i] == key {
			return e.attributes[i+1]
		}
	}
	return ""
}

func annotate(typ typeID, attributes ...string) *element {
	return node("annotation", append([]string{"class", typ.String()}, attributes...)...)
}

// metadataBody is the metadata event after its start time and duration. It is the same in every chunk of every file,
// except in files with types of events of their own (eventTypes).
var metadataBody = sync.OnceValue(func() []byte { return encodeMetadata(typeTable(), metadataID) })

// Readers reuse the metadata of the last chunk if a chunk has the same metadataID.
const metadataID = 1

func encodeMetadata(types []typeDef, id int) []byte {
	classes := node("metadata")
	for i := range types {
		classes.add(types[i].element())
	}
	root := node("root").add(classes, node("region", "locale", "en_US", "gmtOffset", "0"))
	return appendTree(appendInt(nil, uint64(id)), root)
}

// appendTree appends the strings of a tree, and then the tree.
func appendTree(b []byte, root *element) []byte {
	words := wordTable{index: make(map[string]uint64)}
	tree := words.encode(nil, root)
	b = appendInt(b, uint64(len(words.list)))
	for _, w := range words.list {
		b = appendText(b, w)
	}
	return append(b, tree...)
}

type wordTable struct {
	list  []string
	index map[string]uint64
}

func (t *wordTable) number(word string) uint64 {
	n, ok := t.index[word]
	if !ok {
		n = uint64(len(t.list))
		t.list = append(t.list, word)
		t.index[word] = n
	}
	return n
}

func (t *wordTable) encode(b []byte, e *element) []byte {
	b = appendInt(b, t.number(e.name))
	b = appendInt(b, uint64(len(e.attributes)/2))
	for _, word := range e.attributes {
		b = appendInt(b, t.number(word))
	}
	b = appendInt(b, uint64(len(e.children)))
	for _, child := range e.children {
		b = t.encode(b, child)
	}
	return b
}

func (d *typeDef) element() *element {
	e := node("class", "name", d.name, "id", d.id.String())
	if d.super != "" {
		e.attributes = append(e.attributes, "superType", d.super)
	}
	if d.simple {
		e.attributes = append(e.attributes, "simpleType", "true")
	}
	e.label(d.label)
	if d.description != "" {
		e.add(annotate(typeAnnotationDescription, "value", d.description))
	}
	if len(d.category) > 0 {
		category := annotate(typeAnnotationCategory)
		for i, word := range d.category {
			category.attributes = append(category.attributes, "value-"+strconv.Itoa(i), word)
		}
		e.add(category)
	}
	switch d.id {
	case typeAnnotationTimestamp, typeAnnotationTimespan, typeAnnotationAmount, typeAnnotationUnsigned,
		typeAnnotationPercentage, typeAnnotationFrequency:
		e.add(annotate(typeAnnotationContentType))
	}
	for i := range d.fields {
		e.add(d.fields[i].element())
	}
	return e
}

func (e *element) label(text string) {
	if text != "" {
		e.add(annotate(typeAnnotationLabel, "value", text))
	}
}

func (f *fieldDef) element() *element {
	e := node("field", "name", f.name, "class", f.typ.String())
	if f.ref {
		e.attributes = append(e.attributes, "constantPool", "true")
	}
	if f.array {
		e.attributes = append(e.attributes, "dimension", "1")
	}
	e.label(f.label)
	switch f.as {
	case ticks:
		e.add(annotate(typeAnnotationTimestamp, "value", "TICKS"))
	case millis:
		e.add(annotate(typeAnnotationTimestamp, "value", "MILLISECONDS_SINCE_EPOCH"))
	case tickSpan:
		e.add(annotate(typeAnnotationTimespan, "value", "TICKS"))
	case nanoSpan:
		e.add(annotate(typeAnnotationTimespan, "value", "NANOSECONDS"))
	case milliSpan:
		e.add(annotate(typeAnnotationTimespan, "value", "MILLISECONDS"))
	case percentage:
		e.add(annotate(typeAnnotationPercentage))
	case unsigned:
		e.add(annotate(typeAnnotationUnsigned))
	case byteCount:
		e.add(annotate(typeAnnotationAmount, "value", "BYTES"))
		e.add(annotate(typeAnnotationUnsigned))
	case hertz:
		e.add(annotate(typeAnnotationFrequency))
	}
	return e
}
