package recording

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"goprof/output"
	"goprof/output/outfile"
	"goprof/profile"
	"goprof/profile/naming"
)

// collapsedFile is a file of lines "root;caller;leaf count". Its labels also have the facts about samples besides their
// frames.
type collapsedFile struct {
	about Info
	tree  *output.Tree
	what  []label // of the tree's labels
}

type label struct {
	frame  profile.Frame
	thread *profile.Thread // for the frame above a thread's stacks
	state  profile.State
	waits  bool // it is a state of waiting
}

func openCollapsed(from io.Reader, name string) (*collapsedFile, error) {
	tree, err := output.ParseCollapsed(from)
	if err != nil {
		return nil, err
	}
	c := &collapsedFile{tree: tree, what: make([]label, len(tree.Labels))}
	c.about = Info{Name: filepath.Base(name), Format: Collapsed}
	for i, l := range tree.Labels {
		c.what[i] = labelOf(l)
		c.about.Threads = c.about.Threads || c.what[i].thread != nil
		c.about.States = c.about.States || c.what[i].waits
	}
	if name != Stdin {
		c.findSummary(name)
	}
	c.about.Meta.Weight = tree.Weight
	c.about.Weights = []profile.Weight{tree.Weight}
	return c, nil
}

// findSummary reads the summary beside the file. If its sum of samples differs from the file's, it belongs to another
// recording, and is not used. Only a regular file is opened: the user did not name it, and reading a pipe could take
// forever.
func (c *collapsedFile) findSummary(name string) {
	path := output.SummaryPath(name)
	file, err := outfile.OpenRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var s *profile.Summary
	if err == nil {
		defer file.Close()
		s, err = ReadSummary(file, name, c.tree)
	}
	if err != nil {
		c.about.Notes = append(c.about.Notes, fmt.Sprintf("%s not used: %v", path, err))
		return
	}
	c.Describe(s)
}

// Describe adds the recording's account, which has the unit of the file's numbers.
func (c *collapsedFile) Describe(s *profile.Summary) {
	c.about.Summary, c.about.Meta, c.tree.Weight = s, s.Meta, s.Meta.Weight
	c.about.Weights = []profile.Weight{s.Meta.Weight}
}

// ReadSummary reads the account of a recording, and compares it with its stacks.
func ReadSummary(from io.Reader, of string, tree *output.Tree) (*profile.Summary, error) {
	s, err := output.ReadSummary(from)
	if err != nil {
		return nil, err
	}
	if sum := summarySum(s); sum != tree.Total {
		has := output.Amount(s.Meta.Weight, sum)
		return nil, fmt.Errorf("it is of a recording of %s, and %s holds %d", has, of, tree.Total)
	}
	return s, nil
}

func summarySum(s *profile.Summary) int64 {
	switch {
	case s.Meta.Weight == profile.CPUTime:
		return int64(s.Times.Process)
	case s.Meta.Weight == profile.WallTime && s.Looks != nil:
		return int64(s.Looks.Time)
	}
	return s.Samples
}

func (c *collapsedFile) info() *Info                  { return &c.about }
func (c *collapsedFile) Info() Info                   { return c.about }
func (c *collapsedFile) Marks(func(Mark) error) error { return nil }

func (c *collapsedFile) Each(visit func(*profile.Sample) error) error {
	var stack profile.Stack
	for n := range c.tree.Nodes {
		node := &c.tree.Nodes[n]
		if node.Self == 0 {
			continue
		}
		s := c.sample(node, &stack)
		if err := visit(&s); err != nil {
			return err
		}
	}
	return nil
}

func (c *collapsedFile) sample(leaf *output.TreeNode, stack *profile.Stack) (s profile.Sample) {
	*stack = profile.Stack{Frames: stack.Frames[:0]}
	first := c.what[leaf.Name]
	s.State, s.NoState = first.state, !first.waits
	for node := leaf; ; node = &c.tree.Nodes[node.Parent] {
		l := &c.what[node.Name]
		if l.thread != nil && node.Parent == 0 {
			s.Thread = *l.thread
		} else {
			stack.Frames = append(stack.Frames, l.frame)
		}
		if node.Parent == 0 {
			break
		}
	}
	if n := len(stack.Frames); n > 1 {
		root := stack.Frames[n-1].Func.Name
		if why, ok := truncation(root); ok {
			stack.Frames, stack.Truncated = stack.Frames[:n-1], why
		}
	}
	if len(stack.Frames) == 0 { // the line has only a thread
		stack.Frames = append(stack.Frames, noStack)
	}
	s.Stack = stack
	count(&s, c.about.Meta.Weight, leaf.Self)
	return s
}

func count(s *profile.Sample, w profile.Weight, n int64) {
	switch w {
	case profile.CPUTime:
		s.CPU = time.Duration(n)
	case profile.WallTime:
		s.Wall, s.Span = true, time.Duration(n)
	case profile.Bytes:
		s.Bytes = n
	default:
		s.Count = n
	}
}

// noStack stands for an unknown stack.
var noStack = profile.Frame{Func: &profile.Func{Name: "[no stack]"}, Kind: profile.Gap, BCI: -1}

func truncation(name string) (profile.Reason, bool) {
	if !strings.HasPrefix(name, "[truncated: ") {
		return profile.Whole, false
	}
	for why := range profile.NumReasons {
		if why != profile.Whole && name == "[truncated: "+why.String()+"]" {
			return why, true
		}
	}
	return profile.Whole, false
}

var kinds = map[output.LabelKind]profile.Kind{
	output.LabelCompiled: profile.C2, output.LabelC1: profile.C1, output.LabelInterpreted: profile.Interpreted,
	output.LabelInlined: profile.Inlined, output.LabelNative: profile.Native, output.LabelKernel: profile.Kernel,
	output.LabelGap: profile.Gap, output.LabelThread: profile.Gap, output.LabelTruncated: profile.Gap,
	output.LabelState: profile.StateFrame, output.LabelFolded: profile.Gap,
}

func labelOf(name output.Name) label {
	l := label{frame: profile.Frame{Func: &profile.Func{Name: name.Text}, Kind: kinds[name.Kind], BCI: -1}}
	switch name.Kind {
	case output.LabelThread:
		if t, ok := naming.ThreadOf(name.Text); ok {
			l.thread = &t
		}
	case output.LabelState:
		l.waits = true
		text, _, _ := strings.Cut(strings.Trim(name.Text, "[]"), ": ")
		if s := slices.Index(profile.StateNames(), strings.ReplaceAll(text, " ", "-")); s >= 0 {
			l.state = profile.State(s)
		}
	}
	return l
}
