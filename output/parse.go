package output

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// These bound how much of a file is read. A goprof recording has at most profile.DefaultMaxNodes frames, a third of
// these bounds. No reader could understand a page with more frames.
const (
	maxLine   = 4 << 20  // bytes
	maxLines  = 16 << 20 // a pipe may never end
	maxNodes  = 2 << 20
	maxLabels = 1 << 20
	maxNames  = 128 << 20 // bytes of all labels
	maxTotal  = 1 << 53   // JavaScript's numbers are exact up to here
)

// BadFile says which line of a file is wrong. Line 0 is the whole file.
type BadFile struct {
	Line    int
	Problem string
	Text    string // the beginning of the line, safe to show
	TooMuch bool   // nothing is wrong, but there is more than goprof reads
}

func (e *BadFile) Error() string {
	switch {
	case e.Line == 0:
		return e.Problem
	case e.Text == "":
		return fmt.Sprintf("line %d: %s", e.Line, e.Problem)
	}
	return fmt.Sprintf("line %d: %s: %q", e.Line, e.Problem, e.Text)
}

// Bounded is a reader that fails with Problem after Left bytes from From.
type Bounded struct {
	From    io.Reader
	Left    int64
	Problem string
}

func (b *Bounded) Read(to []byte) (int, error) {
	n, err := b.From.Read(to)
	if b.Left -= int64(n); b.Left < 0 {
		return 0, &BadFile{Problem: b.Problem, TooMuch: true}
	}
	return n, err
}

// ParseCollapsed reads a collapsed file, by goprof or another tool: lines "a;b;c count". It skips empty lines. It only
// needs memory for the different stacks.
func ParseCollapsed(from io.Reader) (*Tree, error) {
	p := parser{
		tree:   &Tree{Nodes: make([]TreeNode, 1, 1024)},
		labels: make(map[string]int32),
	}
	p.nodes = grow(p.tree)
	lines := bufio.NewReaderSize(from, 256<<10)
	for {
		line, err := p.readLine(lines)
		if err == io.EOF {
			break
		}
		if err == nil {
			err = p.parse(line)
		}
		if err != nil {
			return nil, err
		}
	}
	if p.tree.Total == 0 {
		return nil, &BadFile{Problem: "there are no stacks in it"}
	}
	p.tree.guessWeight()
	return p.tree, nil
}

type parser struct {
	tree   *Tree
	line   int // its number
	nodes  growth
	labels map[string]int32
	names  int    // total bytes of labels
	long   []byte // a line that is longer than the reader's buffer

	// last is the last stack, and path has the node of each of its labels. In a sorted file most stacks begin like the
	// last one.
	last []byte
	path []pathEntry
}

// pathEntry is a node, and where its label ends in the line.
type pathEntry struct {
	node int32
	end  int
}

// readLine returns the next line without its end. The line is valid until the next call.
func (p *parser) readLine(from *bufio.Reader) ([]byte, error) {
	if p.line++; p.line > maxLines {
		return nil, p.tooMuch("%d lines", maxLines)
	}
	line, err := from.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		p.long = p.long[:0]
		for errors.Is(err, bufio.ErrBufferFull) {
			p.long = append(p.long, line...)
			if len(p.long) > maxLine {
				return nil, p.bad(nil, fmt.Sprintf("longer than %d MiB", maxLine>>20))
			}
			line, err = from.ReadSlice('\n')
		}
		line = append(p.long, line...)
		p.long = line
	}
	if err == io.EOF && len(line) > 0 {
		err = nil
	}
	return bytes.TrimRight(line, "\r\n"), err
}

func (p *parser) bad(line []byte, problem string) error {
	const shown = 60
	text := string(line[:min(len(line), shown)])
	return &BadFile{Line: p.line, Problem: problem, Text: strings.ToValidUTF8(text, "?")}
}

func (p *parser) tooMuch(format string, limit int) error {
	return &BadFile{Line: p.line, Problem: fmt.Sprintf("more than "+format, limit), TooMuch: true}
}

// parse adds one line to the tree.
func (p *parser) parse(line []byte) error {
	if bytes.IndexByte(line, 0) >= 0 {
		return p.bad(nil, "a zero byte: this is no text file")
	}
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	stack, count, err := p.split(line)
	if err != nil {
		return err
	}
	node, err := p.node(stack)
	if err != nil {
		return err
	}
	p.tree.Nodes[node].Self += count
	p.tree.Total += count
	p.tree.Stacks++
	return nil
}

func (p *parser) split(line []byte) (stack []byte, count int64, err error) {
	blank := bytes.LastIndexByte(line, ' ')
	if blank <= 0 {
		return nil, 0, p.bad(line, "not \"stack count\"")
	}
	count, err = strconv.ParseInt(string(line[blank+1:]), 10, 64)
	switch {
	case err != nil:
		return nil, 0, p.bad(line[blank+1:], "the count is not a whole number")
	case count < 0:
		return nil, 0, p.bad(line[blank+1:], "the count is negative")
	case count > maxTotal-p.tree.Total:
		return nil, 0, p.bad(line[blank+1:], "the counts are too large together")
	}
	return line[:blank], count, nil
}

func (p *parser) node(stack []byte) (int32, error) {
	p.path = p.path[:p.common(stack)]
	at, from := int32(0), 0
	if n := len(p.path); n > 0 {
		at, from = p.path[n-1].node, p.path[n-1].end+1
	}
	for from <= len(stack) {
		end := len(stack)
		if i := bytes.IndexByte(stack[from:], ';'); i >= 0 {
			end = from + i
		}
		if end > from { // "a;;b" and a ';' at the end occur in real files
			var err error
			if at, err = p.child(at, stack[from:end]); err != nil {
				return 0, err
			}
			p.path = append(p.path, pathEntry{at, end})
		}
		from = end + 1
	}
	p.last = append(p.last[:0], stack...)
	if at == 0 {
		return 0, p.bad(stack, "no frame")
	}
	return at, nil
}

// common returns how many labels at the beginning this stack shares with the last one.
func (p *parser) common(stack []byte) int {
	same, limit := 0, min(len(stack), len(p.last))
	for same < limit && stack[same] == p.last[same] {
		same++
	}
	n := 0
	for n < len(p.path) {
		end := p.path[n].end
		if end > same || end < len(stack) && stack[end] != ';' {
			break
		}
		n++
	}
	return n
}

// child returns the node of a label below a node, and makes it if needed.
func (p *parser) child(parent int32, label []byte) (int32, error) {
	name, ok := p.labels[string(label)]
	if !ok {
		if len(p.tree.Labels) >= maxLabels {
			return 0, p.tooMuch("%d different names", maxLabels)
		}
		if p.names += len(label); p.names > maxNames {
			return 0, p.tooMuch("%d bytes of different names", maxNames)
		}
		name = int32(len(p.tree.Labels))
		text := strings.ToValidUTF8(string(label), "\uFFFD")
		p.tree.Labels = append(p.tree.Labels, ParseLabel(text))
		p.labels[string(label)] = name
	}
	node := p.nodes.child(parent, name)
	if node >= maxNodes {
		return 0, p.tooMuch("%d frames, those that stacks share counted once", maxNodes)
	}
	return node, nil
}
