package heat

import (
	"unsafe"

	"goprof/output"
	"goprof/profile"
)

// maxNodes bounds the tree while samples are read, of some 100 bytes a node.
const maxNodes = 1 << 21

// stackTree is the tree of all stacks, with the labels of collapsed files.
type stackTree struct {
	tree   output.Tree
	labels map[output.Name]int32
	edges  map[edge]int32 // by label
	calls  map[call]int32 // the same by function, which saves making the label
	recent [1 << recentBits]recentCall
	places profile.ByStack[treePlace]
	full   int64 // samples whose stack was cut because the tree was full
}

type edge struct{ parent, label int32 }

// treePlace is the node at which the stack of a sample ends.
type treePlace struct {
	node  int32
	cut   bool // the tree was full
	guess bool // the leaf is a guess
}

type call struct {
	fn     *profile.Func
	parent int32
	kind   profile.Kind
}

// recentCall is an entry of the cache in front of calls: most frames of a new stack are also in other stacks.
type recentCall struct {
	call
	node int32 // 0 in an empty entry
}

const recentBits = 13

// place is the call's index in the cache.
func (c *call) place() uint64 {
	h := uint64(uintptr(unsafe.Pointer(c.fn)))>>4 ^ uint64(uint32(c.parent))<<32 ^ uint64(c.kind)
	return h * 0x9e3779b97f4a7c15 >> (64 - recentBits)
}

func newStacks() *stackTree {
	return &stackTree{tree: output.Tree{Nodes: make([]output.TreeNode, 1)},
		labels: make(map[output.Name]int32), edges: make(map[edge]int32), calls: make(map[call]int32)}
}

// add returns the node of a sample's stack, with the mark guessed if its leaf is a guess.
func (s *stackTree) add(sample *profile.Sample) (node int32, err error) {
	number, state := sample.StackNumber, sample.StateKey()
	at, known := s.places.Get(number, state)
	if !known {
		if err := sample.Read(); err != nil {
			return 0, err
		}
		at = s.walk(sample)
		s.places.Put(number, state, at)
	}
	if at.cut {
		s.full++
	} else if at.guess {
		return at.node | guessed, nil
	}
	return at.node, nil
}

// walk goes from the root to the node of a sample's stack, and makes missing nodes.
func (s *stackTree) walk(sample *profile.Sample) treePlace {
	at, ok := int32(0), true
	stack := sample.Stack
	if stack == nil {
		stack = &profile.Stack{}
	}
	if stack.Truncated != profile.Whole {
		at, ok = s.child(at, output.Name{Text: "[truncated: " + stack.Truncated.String() + "]", Kind: output.LabelTruncated})
	}
	for i := len(stack.Frames) - 1; i >= 0 && ok; i-- {
		if f := &stack.Frames[i]; f.Func != nil {
			at, ok = s.frame(at, f)
		}
	}
	if ok && sample.LacksLeaf() {
		at, ok = s.child(at, output.Name{Text: sample.State.Label(""), Kind: output.LabelState})
	}
	if ok && at == 0 {
		at, ok = s.child(at, output.Name{Text: "[no stack]", Kind: output.LabelGap})
	}
	return treePlace{at, !ok, stack.GuessedIn() >= 0}
}

func (s *stackTree) frame(parent int32, f *profile.Frame) (node int32, ok bool) {
	key := call{f.Func, parent, f.Kind}
	recent := &s.recent[key.place()]
	if recent.node != 0 && recent.call == key {
		return recent.node, true
	}
	if node, ok = s.called(key, f); ok {
		*recent = recentCall{key, node}
	}
	return node, ok
}

func (s *stackTree) called(key call, f *profile.Frame) (node int32, ok bool) {
	if node, ok = s.calls[key]; ok {
		return node, true
	}
	if node, ok = s.child(key.parent, output.ParseLabel(output.Label(f.Func, f.Kind))); ok {
		if len(s.calls) >= maxNodes { // a reader may make new Funcs each time
			clear(s.calls)
		}
		s.calls[key] = node
	}
	return node, ok
}

// child returns a node, and makes it if needed. If there is no room, it returns the parent, and false.
func (s *stackTree) child(parent int32, name output.Name) (node int32, ok bool) {
	label, known := s.labels[name]
	if !known {
		label = int32(len(s.tree.Labels))
	}
	key := edge{parent, label}
	if node, ok = s.edges[key]; ok {
		return node, true
	}
	if len(s.tree.Nodes) >= maxNodes {
		return parent, false
	}
	if !known {
		s.labels[name] = label
		s.tree.Labels = append(s.tree.Labels, name)
	}
	node = int32(len(s.tree.Nodes))
	s.tree.Nodes = append(s.tree.Nodes, output.TreeNode{Parent: parent, Name: label})
	s.edges[key] = node
	return node, true
}
