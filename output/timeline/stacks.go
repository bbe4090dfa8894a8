package timeline

import (
	"hash/maphash"
	"unsafe"

	"goprof/profile"
)

const (
	maxFrames = 1 << 19
	maxNodes  = 1 << 21
	maxCached = 1 << 17 // stacks in the cache

	recentBits = 13 // log2 of the number of frames in the cache
)

// fullName is the stack for samples whose own stack has no room.
const fullName = "[too many stacks]"

var (
	fullFrame = profile.Frame{Func: &profile.Func{Name: fullName}, Kind: profile.Gap, BCI: -1}
	unnamed   = &profile.Func{Name: "[unknown]"}
)

type stacks struct {
	frames []Frame
	nodes  []Node

	funcs   map[profile.Func]*profile.Func // one for each content
	same    map[*profile.Func]*profile.Func
	frameOf map[Frame]int32
	nodeOf  nodeIndex
	seed    maphash.Seed
	cache   map[uint64]int32 // by hash of the whole stack
	known   profile.ByStack[stackPlace]
	depths  []int32 // by node
	labels  map[labelKey]*profile.Func
	full    int32 // node of fullFrame, 0 before it is needed
	recent  [1 << recentBits]recentStep
}

// recentStep is an entry of the cache in front of the maps: most frames of a new stack are also in other stacks.
type recentStep struct {
	step
	node int32 // 0 in an empty entry
}

// step is a frame with its caller.
type step struct {
	fn     *profile.Func
	parent int32
	line   int32
	depth  int32
	kind   profile.Kind
}

// place returns the step's index in the cache, from the address of its Func.
func (s *step) place() uint64 {
	h := uint64(uintptr(unsafe.Pointer(s.fn)))>>4 ^ uint64(uint32(s.parent))<<32 ^ uint64(uint32(s.line))<<20
	h *= 0x9e3779b97f4a7c15
	return h >> (64 - recentBits)
}

// stackPlace is the place of a sample's stack.
type stackPlace struct {
	node int32
	why  profile.Reason // why callers are missing
	full bool           // there is no room: the stack of the node says so
}

// labelKey is a frame that is not code: the reason why a stack is cut, or a state.
type labelKey struct {
	state profile.State
	why   profile.Reason
}

func newStacks() *stacks {
	return &stacks{nodes: []Node{{Parent: -1, Frame: -1}}, funcs: make(map[profile.Func]*profile.Func),
		same: make(map[*profile.Func]*profile.Func), frameOf: make(map[Frame]int32),
		seed: maphash.MakeSeed(), cache: make(map[uint64]int32), depths: []int32{0},
		labels: make(map[labelKey]*profile.Func)}
}

// stack is the parts of a sample's stack: its frames, and labels at its ends.
type stack struct {
	frames []profile.Frame // leaf first
	root   *profile.Func   // why callers are missing; nil if none are
	leaf   *profile.Func   // the state; nil if the frames have one
}

// of returns the parts of a sample's stack. A look of a wall-clock mode has its state as leaf, as in goprof's own
// files.
func (s *stacks) of(sample *profile.Sample) (st stack) {
	if sample.Stack != nil {
		st.frames = sample.Stack.Frames
		if sample.Stack.Truncated != profile.Whole {
			st.root = s.label(labelKey{why: sample.Stack.Truncated})
		}
	}
	if sample.LacksLeaf() {
		st.leaf = s.label(labelKey{state: sample.State})
	}
	return st
}

func (s *stacks) label(key labelKey) *profile.Func {
	fn := s.labels[key]
	if fn == nil {
		fn = &profile.Func{Name: key.state.Label("")}
		if key.why != profile.Whole {
			fn.Name = "[truncated: " + key.why.String() + "]"
		}
		s.labels[key] = fn
	}
	return fn
}

func (s *stacks) add(sample *profile.Sample) (at stackPlace, err error) {
	number, state := sample.StackNumber, sample.StateKey()
	if at, known := s.known.Get(number, state); known {
		return at, nil
	}
	if err := sample.Read(); err != nil {
		return stackPlace{}, err
	}
	if sample.Stack != nil {
		at.why = sample.Stack.Truncated
	}
	node, ok := int32(0), false
	if st := s.of(sample); number == 0 {
		node, ok = s.find(st)
	} else {
		node, ok = s.walk(st)
	}
	if !ok {
		node = s.noRoom()
	}
	at.node, at.full = node, !ok
	if ok {
		s.known.Put(number, state, at)
	}
	return at, nil
}

// find is walk with a cache, for stacks without a number.
func (s *stacks) find(st stack) (node int32, ok bool) {
	hash := s.hash(st)
	if n, found := s.cache[hash]; found && s.is(n, st) {
		return n, true
	}
	if node, ok = s.walk(st); !ok {
		return 0, false
	}
	if len(s.cache) >= maxCached {
		clear(s.cache)
	}
	s.cache[hash] = node
	return node, true
}

func (s *stacks) hash(st stack) uint64 {
	var h uint64
	mix := func(fn *profile.Func, more uint64) {
		h = (h ^ maphash.Comparable(s.seed, fn) ^ more) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	for i := range st.frames {
		f := &st.frames[i]
		mix(f.Func, uint64(uint32(f.Line))<<8|uint64(f.Kind))
	}
	mix(st.root, 1)
	mix(st.leaf, 2)
	return h
}

func (s *stacks) is(node int32, st stack) bool {
	next := func(fn *profile.Func, kind profile.Kind, line int32) bool {
		if node == 0 {
			return false
		}
		f := &s.frames[s.nodes[node].Frame]
		node = s.nodes[node].Parent
		return f.Kind == kind && f.Line == line && (f.Func == fn || s.same[fn] == f.Func)
	}
	if st.leaf != nil && !next(st.leaf, profile.StateFrame, 0) {
		return false
	}
	for i := range st.frames {
		f := &st.frames[i]
		if !next(f.Func, f.Kind, max(f.Line, 0)) {
			return false
		}
	}
	if st.root != nil && !next(st.root, profile.Gap, 0) {
		return false
	}
	return node == 0
}

// walk goes from the root to the stack's node, and makes missing nodes.
func (s *stacks) walk(st stack) (node int32, ok bool) {
	ok = true
	if st.root != nil {
		node, ok = s.child(0, Frame{Func: s.function(st.root), Kind: profile.Gap})
	}
	depth := int32(0)
	for i := len(st.frames) - 1; ok && i >= 0; i-- {
		f := &st.frames[i]
		if depth++; f.Kind != profile.Inlined {
			depth = 0
		}
		node, ok = s.below(step{f.Func, node, max(f.Line, 0), depth, f.Kind})
	}
	if st.leaf != nil && ok {
		node, ok = s.child(node, Frame{Func: s.function(st.leaf), Kind: profile.StateFrame})
	}
	return node, ok
}

// below is child for a frame in the reader's form.
func (s *stacks) below(st step) (int32, bool) {
	recent := &s.recent[st.place()]
	if recent.node != 0 && recent.step == st {
		return recent.node, true
	}
	node, ok := s.child(st.parent, Frame{s.function(st.fn), st.kind, st.line, st.depth})
	if ok {
		*recent = recentStep{st, node}
	}
	return node, ok
}

// child returns the node of a frame below a node, and makes it if needed. It returns false if there is no room.
func (s *stacks) child(parent int32, f Frame) (int32, bool) {
	frame, ok := s.frameOf[f]
	if !ok {
		if len(s.frames) >= maxFrames {
			return 0, false
		}
		frame = int32(len(s.frames))
		s.frames = append(s.frames, f)
		s.frameOf[f] = frame
	}
	at := s.nodeOf.find(s.nodes, Node{parent, frame})
	if *at != 0 {
		return *at, true
	}
	if len(s.nodes) >= maxNodes {
		return 0, false
	}
	*at = int32(len(s.nodes))
	s.nodes = append(s.nodes, Node{parent, frame})
	s.depths = append(s.depths, s.depths[parent]+1)
	return int32(len(s.nodes) - 1), true
}

// function returns one Func for all Funcs with the same content: readers may make several.
func (s *stacks) function(fn *profile.Func) *profile.Func {
	if one := s.same[fn]; one != nil {
		return one
	}
	if len(s.same) >= maxFrames {
		clear(s.same)
	}
	if fn == nil {
		s.same[nil] = unnamed
		return unnamed
	}
	one := s.funcs[*fn]
	if one == nil && len(s.funcs) >= maxFrames {
		return fn // there is no room for its frames
	}
	if one == nil {
		one = fn
		s.funcs[*fn] = fn
	}
	s.same[fn] = one
	return one
}

// noRoom returns the node of a stack with one frame that says so. It is the only node beyond the bounds.
func (s *stacks) noRoom() int32 {
	if s.full == 0 {
		s.full = int32(len(s.nodes))
		s.nodes = append(s.nodes, Node{0, int32(len(s.frames))})
		s.depths = append(s.depths, 1)
		s.frames = append(s.frames, Frame{Func: fullFrame.Func, Kind: profile.Gap})
	}
	return s.full
}
