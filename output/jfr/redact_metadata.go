package jfr

import (
	"slices"
	"strings"
)

// keptTypes is the metadata without types that are not listed.
type keptTypes struct {
	root    *element
	classes map[int64]bool
}

// keepTypes leaves out classes that are not listed, and all fields, annotations and settings of such classes.
func keepTypes(root *element) *keptTypes {
	k := &keptTypes{classes: make(map[int64]bool)}
	k.choose(root)
	k.root = k.filter(root)
	return k
}

func (k *keptTypes) choose(e *element) {
	if e.name == "class" && keepsClass(e.attribute("name"), e.attribute("superType")) {
		k.classes[typeNumber(e.attribute("id"))] = true
	}
	for _, child := range e.children {
		k.choose(child)
	}
}

// filter copies an element without the parts that are left out.
func (k *keptTypes) filter(e *element) *element {
	out := &element{name: e.name}
	for i := 0; i < len(e.attributes); i += 2 {
		if key := e.attributes[i]; e.name != "region" || key == "gmtOffset" { // a region shows where the machine is
			out.attributes = append(out.attributes, key, e.attributes[i+1])
		}
	}
	for _, child := range e.children {
		if k.keeps(child) {
			out.children = append(out.children, k.filter(child))
		}
	}
	return out
}

func (k *keptTypes) keeps(e *element) bool {
	switch e.name {
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

const maxFieldName = 48

// keepsField reports whether a field stays: its type stays, and its name is one of the JDK's.
func (k *keptTypes) keepsField(name string, of int64) bool {
	return k.classes[of] && len(name) <= maxFieldName && isIdentifier(name)
}

func isIdentifier(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
}

func (k *keptTypes) event(start int64, id uint64) []byte {
	b := appendInt(nil, uint64(typeMetadata))
	b = appendInt(b, uint64(start))
	b = appendInt(b, 0) // duration
	return appendEvent(nil, appendTree(appendInt(b, id), k.root))
}

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
