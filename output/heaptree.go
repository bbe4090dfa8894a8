package output

import (
	"strings"

	"goprof/profile"
)

// Kinds of the nodes of HeapTree.
const (
	heapPart    = LabelFolded
	heapPackage = LabelState
	heapClass   = LabelCompiled
	heapArray   = LabelInlined
	heapLength  = LabelThread
)

// HeapKinds names the kinds of nodes in a tree by HeapTree.
var HeapKinds = [NumLabelKinds]string{heapPart: "part of the heap", heapPackage: "package", heapClass: "class",
	heapArray: "arrays", heapLength: "arrays of that length"}

// HeapTree returns what fills a heap as a tree of bytes: parts, packages, classes, and arrays by length.
func HeapTree(h *profile.Heap) *Tree {
	b := &heapTree{Tree: &Tree{Nodes: make([]TreeNode, 1), Weight: profile.Bytes}, names: map[Name]int32{}}
	b.nodes = grow(b.Tree)
	for i := range h.Parts {
		part := h.Parts[i].Name
		top := b.node(0, part, heapPart)
		for _, c := range h.Classes {
			if a := c.Parts[part]; a.Objects > 0 {
				b.class(top, c, part, a)
			}
		}
	}
	return b.Tree
}

type heapTree struct {
	*Tree
	names map[Name]int32
	nodes growth
}

// class adds the objects of one class in one part, under the packages of the class's name.
func (b *heapTree) class(at int32, c *profile.HeapClass, part string, a profile.HeapAmount) {
	b.Stacks++
	name, kind := CleanName(c.Name), heapClass
	if strings.HasSuffix(name, "[]") {
		kind = heapArray
	}
	packages, hidden, _ := strings.Cut(name, "/") // a hidden class has an address after a slash
	words := strings.Split(packages, ".")
	for _, word := range words[:len(words)-1] {
		at = b.node(at, word, heapPackage)
	}
	last := words[len(words)-1]
	if hidden != "" {
		last += "/" + hidden
	}
	at = b.node(at, last, kind)
	rest := a.Bytes
	for _, l := range c.Lengths {
		if bytes := l.Parts[part].Bytes; bytes > 0 && len(c.Lengths) > 1 {
			b.add(b.node(at, lengthText(l.From, l.To), heapLength), bytes)
			rest -= bytes
		}
	}
	b.add(at, max(rest, 0))
}

func (b *heapTree) add(at int32, bytes float64) {
	b.Nodes[at].Self += int64(bytes)
	b.Total += int64(bytes)
}

func (b *heapTree) node(parent int32, text string, kind LabelKind) int32 {
	name := Name{text, kind}
	label, known := b.names[name]
	if !known {
		label = int32(len(b.Labels))
		b.Labels = append(b.Labels, name)
		b.names[name] = label
	}
	return b.nodes.child(parent, label)
}
