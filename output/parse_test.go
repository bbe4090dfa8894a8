package output

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"goprof/profile"
)

// TestParsedWeight: a file shows its weight even without a summary.
func TestParsedWeight(t *testing.T) {
	for in, want := range map[string]profile.Weight{
		"[exited threads] 123\na;b 7000000\n":     profile.CPUTime,
		"[not sampled] 5\na;b 7000000\n":          profile.CPUTime,
		"[not sampled] 0\na;b 7000000\n":          profile.Samples,
		"a;[not sampled] 5\nb;[not sampled]x 5\n": profile.Samples,
	} {
		if tree, err := ParseCollapsed(strings.NewReader(in)); err != nil || tree.Weight != want {
			t.Errorf("%q: %+v, %v", in, tree, err)
		}
	}
}

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		in    string
		total int64
		nodes int // without the root
	}{
		"one":                        {"a;b 3\n", 3, 2},
		"shared":                     {"a;b 3\na;b;c 2\na 1\n", 6, 3},
		"no end of the last line":    {"a 1\nb 2", 3, 2},
		"windows":                    {"a;b 1\r\na;c 2\r\n", 3, 3},
		"blanks in names":            {"[GC Thread#0 tid=5];void f(int, long) 7\n", 7, 2},
		"empty lines":                {"\na 1\n\n  \n", 1, 1},
		"empty frames":               {";a;;b; 1\na;b 1\n", 2, 2},
		"prefix of a label":          {"ab;c 1\na;c 1\nab 1\na 1\nabc;c 1\n", 5, 6},
		"the same twice":             {"a;b 1\na;b 1\n", 2, 2},
		"zero":                       {"a 0\nb 1\n", 1, 2},
		"no UTF-8":                   {"a\xff\xfe 1\n", 1, 1},
		"line longer than a buffer":  {strings.Repeat("frame;", 100_000) + "x 5\nframe 1\n", 6, 100_001},
		"unsorted, back and forth":   {"a;b;c 1\nb;c 1\na;b;d 1\na;b;c 1\n", 4, 6},
		"frame equal to a long path": {"a;b;c 1\na;b 1\na;b;c;d 1\na;bc 1\n", 4, 5},
	} {
		t.Run(name, func(t *testing.T) {
			tree, err := ParseCollapsed(strings.NewReader(c.in))
			if err != nil {
				t.Fatal(err)
			}
			if tree.Total != c.total || len(tree.Nodes) != c.nodes+1 || tree.Totals()[0] != c.total {
				t.Errorf("total %d (%d), %d nodes; want %d, %d", tree.Total, tree.Totals()[0], len(tree.Nodes)-1, c.total, c.nodes)
			}
		})
	}
}

func TestParseNamesTheBadLine(t *testing.T) {
	for name, c := range map[string]struct {
		in, problem string
		line        int
	}{
		"empty":           {"", "no stacks", 0},
		"only zero":       {"a 0\n", "no stacks", 0},
		"no count":        {"a;b 1\na;b\n", "not \"stack count\"", 2},
		"no stack":        {"a 1\nb 1\n 5\n", "not \"stack count\"", 3},
		"only separators": {";; 5\n", "no frame", 1},
		"not a number":    {"a;b one\n", "not a whole number", 1},
		"fraction":        {"a 1.5\n", "not a whole number", 1},
		"negative":        {"a 1\na -1\n", "negative", 2},
		"too large":       {"a 9007199254740992\na 1\n", "too large", 2},
		"no int64":        {"a 99999999999999999999\n", "not a whole number", 1},
		"binary":          {"\x7fELF\x02\x01\x01\x00\x00\n", "no text file", 1},
		"huge line":       {"a 1\n" + strings.Repeat("x", maxLine+300<<10) + " 1\n", "longer than", 2},
		"comment":         {"# made by\n", "not a whole number", 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseCollapsed(strings.NewReader(c.in))
			var bad *BadFile
			if !errors.As(err, &bad) || bad.Line != c.line || !strings.Contains(bad.Problem, c.problem) {
				t.Errorf("got %v, want line %d: %s", err, c.line, c.problem)
			}
		})
	}
}

func TestParseReportsReadErrors(t *testing.T) {
	broken := errors.New("disk on fire")
	_, err := ParseCollapsed(&failingReader{"a 1\nb", broken})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

type failingReader struct {
	text string
	err  error
}

func (f *failingReader) Read(b []byte) (int, error) {
	if f.text == "" {
		return 0, f.err
	}
	n := copy(b, f.text)
	f.text = f.text[n:]
	return n, nil
}

func TestLabelKinds(t *testing.T) {
	for label, want := range map[string]Name{
		"a.B.c_[j]":                    {"a.B.c", LabelCompiled},
		"a.B.c_[1]":                    {"a.B.c", LabelC1},
		"a.B.c_[0]":                    {"a.B.c", LabelInterpreted},
		"a.B.c_[i]":                    {"a.B.c", LabelInlined},
		"do_syscall_64_[k]":            {"do_syscall_64", LabelKernel},
		"_[j]":                         {"_[j]", LabelNative},
		"x_[q]":                        {"x_[q]", LabelNative},
		"java/lang/Thread.run":         {"java/lang/Thread.run", LabelCompiled},
		"java.lang.Thread.run":         {"java.lang.Thread.run", LabelCompiled},
		"Main.main":                    {"Main.main", LabelCompiled},
		"java.lang.Object.<init>":      {"java.lang.Object.<init>", LabelCompiled},
		"libc.so.6":                    {"libc.so.6", LabelNative},
		"libX.so+0x1f":                 {"libX.so+0x1f", LabelNative},
		"__libc_start_main":            {"__libc_start_main", LabelNative},
		"JavaThread::run":              {"JavaThread::run", LabelNative},
		"[pool-1-thread-2 tid=77]":     {"[pool-1-thread-2 tid=77]", LabelThread},
		"[truncated: too deep]":        {"[truncated: too deep]", LabelTruncated},
		"[truncated: a tid=5]":         {"[truncated: a tid=5]", LabelThread}, // a thread with such a name
		"[no unwind info: libfoo.so]":  {"[no unwind info: libfoo.so]", LabelGap},
		"[profile full: not kept]":     {"[profile full: not kept]", LabelNative},
		"Interpreter":                  {"Interpreter", LabelNative},
		"StubRoutines.arraycopy (old)": {"StubRoutines.arraycopy (old)", LabelNative},
	} {
		if got := ParseLabel(label); got != want {
			t.Errorf("%q: %v %v, want %v", label, got, got.Kind, want.Kind)
		}
	}
}

// treeStacks are the lines of a tree, for comparison.
func treeStacks(t *Tree) map[string]int64 {
	paths, stacks := make([]string, len(t.Nodes)), map[string]int64{}
	for i, n := range t.Nodes[1:] {
		name := t.Labels[n.Name]
		paths[i+1] = paths[n.Parent] + ";" + fmt.Sprint(name.Text, "/", name.Kind)
		if n.Self > 0 {
			stacks[paths[i+1]] += n.Self
		}
	}
	return stacks
}

func FuzzParseCollapsed(f *testing.F) {
	f.Add([]byte("a;b 3\na;b;c_[j] 2\n[x tid=1];a 1\n"))
	f.Add([]byte("\x00\x01 1\n"))
	f.Add([]byte("a;;b; 1\r\n\n ; 2"))
	f.Add([]byte("a;b;c 1\na;bc 1\nab 1\na 9223372036854775807"))
	f.Fuzz(func(t *testing.T, in []byte) {
		tree, err := ParseCollapsed(bytes.NewReader(in))
		if err != nil {
			return
		}
		for i, n := range tree.Nodes[1:] {
			if n.Parent < 0 || int(n.Parent) > i || int(n.Name) >= len(tree.Labels) || n.Self < 0 {
				t.Fatalf("node %d is %+v", i+1, n)
			}
		}
		// The parser has a shortcut along the last line. The result must be the same if each line is read alone.
		plain := map[string]int64{}
		for line := range bytes.Lines(in) {
			one, err := ParseCollapsed(bytes.NewReader(line))
			if err != nil {
				continue // the line is empty, or has no samples
			}
			for s, n := range treeStacks(one) {
				plain[s] += n
			}
		}
		whole := treeStacks(tree)
		if len(plain) != len(whole) {
			t.Fatalf("%d stacks, %d line by line", len(whole), len(plain))
		}
		for s, n := range plain {
			if whole[s] != n {
				t.Fatalf("%q: %d, line by line %d", s, whole[s], n)
			}
		}
	})
}

// manyStacks returns a collapsed file of n stacks, about as deep as those of a server.
func manyStacks(n int) []byte {
	p := profile.NewSize(1 << 22)
	r := rand.New(rand.NewPCG(7, 8))
	funcs := make([]*profile.Func, 5000)
	for i := range funcs {
		funcs[i] = &profile.Func{Name: fmt.Sprintf("com.example.shop.module%d.Service%d.handleRequest%d", i%40, i%700, i)}
	}
	for range n {
		s := &profile.Stack{}
		depth := 20 + r.IntN(60)
		for d := range depth {
			f := funcs[(depth-d)*7]
			if d < 12 {
				f = funcs[int(r.ExpFloat64()*300)%len(funcs)]
			}
			s.Frames = append(s.Frames, profile.Frame{Func: f, Kind: profile.Kind(r.IntN(4) / 3 * 2)})
		}
		p.Add("", s, 1)
	}
	var b bytes.Buffer
	if err := Collapsed(&b, p); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func BenchmarkParseCollapsed(b *testing.B) {
	file := manyStacks(60_000)
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	var nodes int
	for b.Loop() {
		tree, err := ParseCollapsed(bytes.NewReader(file))
		if err != nil {
			b.Fatal(err)
		}
		nodes = len(tree.Nodes)
	}
	b.ReportMetric(float64(nodes), "nodes")
}

type endless struct {
	next func(n int) string
	n    int
	rest string
}

func (l *endless) Read(b []byte) (int, error) {
	var n int
	for n < len(b) {
		if l.rest == "" {
			l.rest = l.next(l.n)
			l.n++
		}
		k := copy(b[n:], l.rest)
		n, l.rest = n+k, l.rest[k:]
	}
	return n, nil
}

// TestTooMuchHasAnEnd: reading an endless file, or one with more than a page can show, ends with an error that says
// why.
func TestTooMuchHasAnEnd(t *testing.T) {
	emptyLines := strings.Repeat("\n", 1<<16)
	files := map[string]func(n int) string{
		"more than 16777216 lines": func(int) string { return emptyLines },
		"more than 2097152 frames, those that stacks share counted once": func(n int) string {
			return fmt.Sprintf("a%d;b%d;c%d 1\n", n%97, n%9973, n%100003)
		},
		"more than 1048576 different names": func(n int) string { return fmt.Sprintf("name%d 1\n", n) },
		"more than 134217728 bytes of different names": func(n int) string {
			return fmt.Sprintf("%d%s 1\n",
				n, strings.Repeat("x", 1<<20))
		},
	}
	if testing.Short() { // make test reads these files, which takes 3 s of CPU time
		delete(files, "more than 2097152 frames, those that stacks share counted once")
		delete(files, "more than 1048576 different names")
	}
	for problem, next := range files {
		_, err := ParseCollapsed(&endless{next: next})
		var bad *BadFile
		if !errors.As(err, &bad) || !bad.TooMuch || bad.Problem != problem {
			t.Errorf("%q: %v", problem, err)
		}
	}
}
