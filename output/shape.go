package output

import (
	"slices"

	"goprof/profile/naming"
)

// Shape sets which parts of a profile are merged.
type Shape struct {
	HideInternal bool // runs of frames that only pass calls on: naming.Fold
	HideEntries  bool // only those of them with which threads begin: naming.FoldEntry
	HideWaits    bool // frames in which threads just wait: naming.Waits. The state is then above the waiting frame
	GroupThreads bool // threads of one pool: naming.Pool
	MergeKinds   bool // a method under one caller, for all kinds of code: Tree.Split
}

// Drawn returns the shape of a picture in shape s: a method occurs once under its caller, the frames with which a
// thread begins are one, and frames in which a thread just waits are left out.
func (s Shape) Drawn() Shape {
	s.HideEntries, s.HideWaits, s.MergeKinds = true, true, true
	return s
}

// Drawn makes two trees from t: one in the drawn shape, and one in shape s with all frames. The second tree is nil if
// it would equal the first one.
func (t *Tree) Drawn(s Shape) (drawn, whole *Tree) {
	drawn = t.Shaped(s)
	if !s.HideEntries && !s.HideWaits {
		return drawn, nil
	}
	s.HideEntries, s.HideWaits = false, false
	if whole = t.Shaped(s); len(whole.Nodes) == len(drawn.Nodes) {
		whole = nil
	}
	return drawn, whole
}

// Shaped returns a tree with the stacks of t in another shape. Counts and leaves stay.
func (t *Tree) Shaped(s Shape) *Tree {
	if s == (Shape{}) {
		return t
	}
	to, _ := t.ShapedLeaves(s)
	return to
}

// ShapedLeaves is Shaped. leaves maps each node of t in which a stack ends to the node of the new tree in which the
// stack ends now. It is 0 for other nodes.
func (t *Tree) ShapedLeaves(s Shape) (to *Tree, leaves []int32) {
	m := shaper{from: t, what: make([]naming.Plumbing, len(t.Labels)), label: make([]int32, len(t.Labels)),
		texts: make(map[string]int32),
		to:    &Tree{Nodes: make([]TreeNode, 1, len(t.Nodes)), Total: t.Total, Weight: t.Weight, Unnamed: t.Unnamed}}
	m.nodes = grow(m.to)
	switch {
	case s.HideInternal:
		m.fold = naming.Fold
	case s.HideEntries:
		m.fold, m.jobs = naming.FoldEntry, make([]ownJob, len(t.Labels))
	}
	if s.MergeKinds {
		m.merged, m.parts = make(map[string]int32), make([]KindParts, 1, len(t.Nodes))
		m.to.Split = make(map[int32]KindParts)
	}
	if s.HideWaits {
		m.waits = make([]bool, len(t.Labels))
	}
	if t.Guessed != nil {
		m.to.Guessed = make(map[int32]int64)
	}
	for i, l := range t.Labels {
		if s.HideWaits {
			m.waits[i] = waitsIn(l)
		}
		if m.fold != nil {
			m.what[i] = plumbingOf(l)
		}
		if m.jobs != nil {
			m.jobs[i] = factsOf(l).own
		}
		m.label[i] = m.labelIn(l)
		if s.GroupThreads && l.Kind == LabelThread {
			m.label[i] = m.labelOf(Name{naming.PoolLabel(l.Text), LabelThread})
		}
	}
	leaves = make([]int32, len(t.Nodes))
	m.to.Nodes[0].Self = t.Nodes[0].Self
	for n := 1; n < len(t.Nodes); n++ {
		if t.Nodes[n].Self != 0 {
			leaves[n] = m.add(int32(n))
		}
	}
	m.chooseKinds()
	return m.to, leaves
}

// plumbingOf returns the kind of plumbing of a label's frame, as far as the label shows it.
func plumbingOf(l Name) naming.Plumbing {
	switch {
	case l.Kind.Java():
		return naming.PlumbingOf(l.Text)
	case l.Kind == LabelThread:
		return naming.Label
	case l.Kind == LabelTruncated || l.Kind == LabelState || l.Kind == LabelFolded:
		return naming.NoPlumbing
	}
	return naming.NativePlumbingOf(l.Text)
}

type shaper struct {
	from, to *Tree
	what     []naming.Plumbing // by label of from
	jobs     []ownJob          // by label of from; nil: jobs of threads are not named
	waits    []bool            // by label of from; nil: frames in which threads wait stay
	label    []int32           // by label of from: the label in to
	texts    map[string]int32  // labels that to has and from lacks
	nodes    growth            // nodes of to
	fold     func([]naming.Plumbing, func(int), func(int, naming.Plumbing))
	merged   map[string]int32 // if kinds are merged: a method's name -> the label of its first kind, in to
	parts    []KindParts      // if kinds are merged, by node of to

	// stack is the current stack, root first: labels of from.
	stack    []int32
	plumbing []naming.Plumbing
}

// add adds the stack that ends in a node, and returns the node in which it ends now.
func (m *shaper) add(leaf int32) int32 {
	m.stack, m.plumbing = m.stack[:0], m.plumbing[:0]
	for n := leaf; n != 0; n = m.from.Nodes[n].Parent {
		m.stack = append(m.stack, m.from.Nodes[n].Name)
	}
	slices.Reverse(m.stack)
	state, waited := stateOf(m.from.Labels[m.stack[len(m.stack)-1]]) // a state is not code: the leaf is below it
	if waited && m.waits != nil {
		m.dropWaits()
	}
	for _, l := range m.stack {
		m.plumbing = append(m.plumbing, m.what[l])
	}
	at := int32(0)
	if state != "" {
		m.plumbing = m.plumbing[:len(m.plumbing)-1]
	}
	keep := func(i int) {
		at = m.child(at, m.label[m.stack[i]])
		if kind := m.from.Labels[m.stack[i]].Kind; m.parts != nil && kind.Java() {
			m.parts[at][kind] += m.from.Nodes[leaf].Self
		}
	}
	if m.fold == nil {
		for i := range m.plumbing {
			keep(i)
		}
	} else {
		m.fold(m.plumbing, keep, func(_ int, what naming.Plumbing) {
			text := what.String()
			if what == naming.ThreadEntry && m.jobs != nil {
				text = m.entryText(text)
			}
			at = m.child(at, m.labelOf(Name{text, LabelFolded}))
		})
	}
	if state != "" {
		at = m.child(at, m.label[m.stack[len(m.stack)-1]])
	}
	if m.to.Nodes[at].Self == 0 {
		m.to.Stacks++
	}
	m.to.Nodes[at].Self += m.from.Nodes[leaf].Self
	if n := m.from.Guessed[leaf]; n > 0 {
		m.to.Guessed[at] += n
	}
	return at
}

// entryTexts are the frames for the beginnings of the JVM's own threads.
var entryTexts = [...]string{vmJob: "[JVM]", jitJob: "[JIT compiler]", c1Job: "[C1 compiler]", c2Job: "[C2 compiler]",
	gcJob: "[GC worker]"}

// entryText returns the frame that replaces the frames with which a thread begins. For a thread of the JVM it is the
// thread's job, by the first function from the root that shows one. For a compiler's thread it is the compiler. A stack
// with a Java method belongs to a thread of the program, which gets ofProgram.
func (m *shaper) entryText(ofProgram string) string {
	job := noJob
	for _, l := range m.stack {
		kind := m.from.Labels[l].Kind
		if kind.Java() {
			return ofProgram
		}
		if kind != LabelThread && (job == noJob || job == jitJob && m.jobs[l] > jitJob) {
			job = m.jobs[l]
		}
	}
	if job == noJob {
		return ofProgram
	}
	return entryTexts[job]
}

// dropWaits drops the frames above the frame that the stack's time counts for, except the state.
func (m *shaper) dropWaits() {
	var top topmost
	for i, l := range m.stack {
		top = top.above(int32(i+1), m.from.Labels[l].Kind, m.waits[l])
	}
	if last := len(m.stack) - 1; top.node > 0 && int(top.node) < last {
		m.stack = append(m.stack[:top.node], m.stack[last])
	}
}

func (m *shaper) labelIn(l Name) int32 {
	if m.merged == nil || !l.Kind.Java() {
		return m.newLabel(l)
	}
	first, ok := m.merged[l.Text]
	if !ok {
		first = m.newLabel(l)
		m.merged[l.Text] = first
	}
	return first
}

// chooseKinds sets the kind of each method's node to that of most of its samples.
func (m *shaper) chooseKinds() {
	labels := make(map[Name]int32)
	for node, p := range m.parts {
		most, kinds := LabelKind(0), 0
		for k, n := range p {
			if n > 0 {
				kinds++
			}
			if n > p[most] {
				most = LabelKind(k)
			}
		}
		if kinds == 0 { // not a method
			continue
		}
		at := &m.to.Nodes[node]
		want := Name{m.to.Labels[at.Name].Text, most}
		if m.to.Labels[at.Name] != want {
			if _, ok := labels[want]; !ok {
				labels[want] = m.newLabel(want)
			}
			at.Name = labels[want]
		}
		if kinds > 1 {
			m.to.Split[int32(node)] = p
		}
	}
}

func (m *shaper) newLabel(l Name) int32 {
	m.to.Labels = append(m.to.Labels, l)
	return int32(len(m.to.Labels) - 1)
}

func (m *shaper) labelOf(l Name) int32 {
	i, ok := m.texts[l.Text]
	if !ok {
		i = m.newLabel(l)
		m.texts[l.Text] = i
	}
	return i
}

func (m *shaper) child(parent, label int32) int32 {
	n := m.nodes.child(parent, label)
	if m.parts != nil && int(n) == len(m.parts) {
		m.parts = append(m.parts, KindParts{})
	}
	return n
}
