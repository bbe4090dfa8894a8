package diff

import (
	"goprof/output"
)

// Bounds for both recordings together. Readers of files have limits of their own.
const (
	maxNodes = 4 << 20
	maxCells = 16 << 20
	maxTotal = 1 << 53 // JavaScript's numbers are exact up to here
)

// Side is one of the two recordings.
type Side int

const (
	Before Side = iota
	After
	sides
)

// tree is the stacks of both recordings. Frames that only differ in how they were compiled are merged: the next run
// compiles at other moments.
type tree struct {
	labels   []output.Name
	nodes    []node
	byText   map[string]int32
	children map[uint64]int32 // parent and label -> node
}

type node struct {
	parent, label int32
	self          [sides]int64
	squares       [sides]float64 // of the standings that end here: see standing
	guessed       [sides]int64   // the part of self that was in some method inlined here
	inlined       bool           // in some sample, into the parent
}

func newTree() tree {
	return tree{nodes: make([]node, 1, 1024), byText: make(map[string]int32), children: make(map[uint64]int32)}
}

func (t *tree) label(n output.Name) int32 {
	n = comparable(n)
	id, ok := t.byText[n.Text]
	if !ok {
		id = int32(len(t.labels))
		t.labels = append(t.labels, n)
		t.byText[n.Text] = id
	}
	return id
}

// child returns a node, and makes it if needed. It is 0 if there is no room.
func (t *tree) child(parent, label int32) int32 {
	edge := uint64(parent)<<32 | uint64(label)
	n, ok := t.children[edge]
	if !ok {
		if len(t.nodes) >= maxNodes {
			return 0
		}
		n = int32(len(t.nodes))
		t.nodes = append(t.nodes, node{parent: parent, label: label})
		t.children[edge] = n
	}
	return n
}
