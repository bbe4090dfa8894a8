package output

import (
	"strings"

	"goprof/profile"
	"goprof/profile/naming"
)

// Tree is a profile from a file. A frame has only its label.
type Tree struct {
	Labels []Name         // of all nodes
	Nodes  []TreeNode     // Nodes[0] is the root, which is not a frame; parents come before their children
	Total  int64          // of all counts
	Weight profile.Weight // what is counted; the file's summary has it for certain
	Stacks int            // lines of the file
	// Unnamed is how much of Total counts for a compiled method because the inlined method is a guess.
	Unnamed int64
	// Split has the nodes of methods that ran as several kinds of code. It is nil unless kinds are merged
	// (Shape.MergeKinds).
	Split map[int32]KindParts
	// Guessed is, for some nodes, how much of Self is a guess: another inlined method may have run. Collapsed files do not
	// have this.
	Guessed map[int32]int64
}

// KindParts are the samples of a method's subtree by the kind of its code: compiled, C1, interpreted, inlined.
type KindParts [LabelInlined + 1]int64

// guessWeight guesses whether the file counts CPU time, for files without a summary, such as those from a pipe. Only
// files of CPU time have these two roots.
func (t *Tree) guessWeight() {
	for i := 1; i < len(t.Nodes); i++ {
		n := &t.Nodes[i]
		text := t.Labels[n.Name].Text
		unseen := text == profile.NotSampled || text == profile.ExitedThreads
		if n.Parent == 0 && n.Self > 0 && unseen {
			t.Weight = profile.CPUTime
			return
		}
	}
}

// TreeNode is a frame with its callers.
type TreeNode struct {
	Self   int64 // of the stacks that end here
	Parent int32
	Name   int32 // index in Labels
}

// Name is a frame's name without its suffix, and the kind that the label shows.
type Name struct {
	Text string
	Kind LabelKind
}

// LabelKind is the kind of a frame as far as a label shows it. The profile distinguishes more kinds.
type LabelKind uint8

const (
	LabelCompiled LabelKind = iota // also native methods
	LabelC1
	LabelInterpreted
	LabelInlined
	LabelNative // also stubs, and the JVM's own code
	LabelKernel
	LabelGap
	LabelThread
	LabelTruncated
	LabelState // what a thread did or waited for
	LabelFolded
	NumLabelKinds
)

var labelKindNames = [NumLabelKinds]string{
	"compiled", "c1", "interpreted", "inlined", "native", "kernel", "gap", "thread", "truncated", "state", "folded",
}

func (k LabelKind) String() string { return labelKindNames[k] }

// Java reports whether the label is a Java method's.
func (k LabelKind) Java() bool { return k <= LabelInlined }

// ParseLabel splits a label. Other tools' files have labels without suffixes: there, a label that looks like a Java
// method counts as compiled.
func ParseLabel(label string) Name {
	text, suffix := cutSuffix(label)
	return Name{text, labelKind(text, suffix)}
}

func labelKind(text, suffix string) LabelKind {
	switch suffix {
	case suffixCompiled:
		return LabelCompiled
	case suffixC1:
		return LabelC1
	case suffixInterpreted:
		return LabelInterpreted
	case suffixInlined:
		return LabelInlined
	case suffixKernel:
		return LabelKernel
	}
	switch {
	case strings.HasPrefix(text, "["):
		return bracketKind(text)
	case !strings.Contains(text, "::") && looksJava(text):
		return LabelCompiled
	}
	return LabelNative
}

func bracketKind(text string) LabelKind {
	switch {
	case naming.IsThreadLabel(text):
		return LabelThread
	case profile.IsState(text):
		return LabelState
	case strings.HasPrefix(text, "[truncated: "):
		return LabelTruncated
	case strings.HasPrefix(text, "[no unwind info") || profile.IsWaker(text):
		return LabelGap
	case text == profile.NotSampled || text == profile.ExitedThreads:
		return LabelGap
	case naming.IsFold(text):
		return LabelFolded
	}
	return LabelNative
}

// looksJava finds names like java/lang/Thread.run. It finds java.lang.Thread.run by the capital letter of its class,
// which a library (libc.so.6) lacks.
func looksJava(text string) bool {
	dot := strings.LastIndexByte(text, '.')
	if dot <= 0 || dot == len(text)-1 || strings.ContainsAny(text, " +(<@") && !strings.HasSuffix(text, "init>") {
		return false
	}
	class := text[:dot]
	if i := strings.LastIndexAny(class, "./"); i > 0 {
		class = class[i+1:]
	}
	return class != "" && class[0] >= 'A' && class[0] <= 'Z'
}

// Totals returns the counts of each node's whole subtree.
func (t *Tree) Totals() []int64 {
	self := make([]int64, len(t.Nodes))
	for n := range t.Nodes {
		self[n] = t.Nodes[n].Self
	}
	return t.Sums(self)
}

// Sums returns for each node the sum of the numbers in its subtree.
func (t *Tree) Sums(of []int64) []int64 {
	sums := make([]int64, len(t.Nodes))
	for n := len(t.Nodes) - 1; n >= 0; n-- {
		sums[n] += of[n]
		if n > 0 {
			sums[t.Nodes[n].Parent] += sums[n]
		}
	}
	return sums
}
