package output

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"goprof/profile"
)

// everyKind is a stack with frames of all kinds, leaf first.
func everyKind() *profile.Stack {
	return &profile.Stack{Frames: []profile.Frame{
		{Func: &profile.Func{Name: "lib.so+0x1f", Module: "lib.so"}, Kind: profile.Native},
		{Func: &profile.Func{Name: "[no unwind info: lib.so]"}, Kind: profile.Gap},
		{Func: &profile.Func{Name: "StubRoutines (final stubs)"}, Kind: profile.Stub},
		{Func: &profile.Func{Name: "java.lang.Object.wait0"}, Kind: profile.NativeMethod},
		{Func: &profile.Func{Name: "a.B.inlined"}, Kind: profile.Inlined},
		{Func: &profile.Func{Name: "a.B.second"}, Kind: profile.C2},
		{Func: &profile.Func{Name: "a.B.first"}, Kind: profile.C1},
		{Func: &profile.Func{Name: "a.B.<init>"}, Kind: profile.Interpreted},
	}}
}

func collapsed(t *testing.T, p *profile.Profile) string {
	t.Helper()
	var b strings.Builder
	if err := Collapsed(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCollapsed(t *testing.T) {
	p := profile.New()
	p.Add("", everyKind(), 41)
	p.Add("", everyKind(), 1)
	cut := everyKind()
	cut.Frames, cut.Truncated = cut.Frames[:1], profile.StackCut
	p.Add("[main tid=7]", cut, 2)
	const want = "[main tid=7];[truncated: stack longer than its copy];lib.so+0x1f 2\n" +
		"a.B.<init>_[0];a.B.first_[1];a.B.second_[j];a.B.inlined_[i];java.lang.Object.wait0_[j];" +
		"StubRoutines (final stubs);[no unwind info: lib.so];lib.so+0x1f 42\n"
	if got := collapsed(t, p); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestHostileNames(t *testing.T) {
	for name, want := range map[string]string{
		"a;b 9\nc":         "a,b 9?c",
		"":                 "[unknown]",
		"tab\tdel\x7f":     "tab?del?",
		"\u2028\u0085nl":   "??nl",
		"\u202egnp.exe":    "?gnp.exe",
		"bad\xffutf8":      "bad?utf8",
		"Größe.日本語.😀":      "Größe.日本語.😀",
		"native_[j]":       "native_(j]",
		"<script>alert(1)": "<script>alert(1)",
	} {
		f := &profile.Func{Name: name}
		if got := Label(f, profile.Native); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// TestRoundTrip: reading returns what was written, for any names.
func TestRoundTrip(t *testing.T) {
	p := profile.New()
	names := []string{"a;b", "x 12", "e\n5", "_[j]", "q_[0]", "", " ", "\xff", "[t tid=1]", "a", "a b", "日本"}
	var total int64
	for i, a := range names {
		for j, b := range names {
			s := &profile.Stack{Frames: []profile.Frame{
				{Func: &profile.Func{Name: a}, Kind: profile.Kind(i % 8)},
				{Func: &profile.Func{Name: b}, Kind: profile.Kind(j % 8)},
			}}
			p.Add("", s, int64(i+1))
			total += int64(i + 1)
		}
	}
	text := collapsed(t, p)
	tree, err := ParseCollapsed(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if tree.Total != total || tree.Stacks != len(lines) || len(treeStacks(tree)) != len(lines) {
		t.Errorf("%d samples, %d stacks, %d different; want %d, %d", tree.Total, tree.Stacks, len(treeStacks(tree)), total,
			len(lines))
	}
	if !slices.IsSorted(lines) {
		t.Error("lines are not sorted")
	}
}

func TestCollapsedTellsWriteErrors(t *testing.T) {
	p := profile.New()
	p.Add("", everyKind(), 1)
	full := errors.New("no space")
	if err := Collapsed(failingWriter{full}, p); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}

type failingWriter struct{ err error }

func (f failingWriter) Write([]byte) (int, error) { return 0, f.err }

func TestDeterministic(t *testing.T) {
	a, b := manyStacks(500), manyStacks(500)
	if !bytes.Equal(a, b) {
		t.Error("the same stacks gave different files")
	}
}

func BenchmarkCollapsed(b *testing.B) {
	p := profile.New()
	tree, err := ParseCollapsed(bytes.NewReader(manyStacks(20_000)))
	if err != nil {
		b.Fatal(err)
	}
	funcs := make([]*profile.Func, len(tree.Labels))
	for i, l := range tree.Labels {
		funcs[i] = &profile.Func{Name: l.Text}
	}
	for _, n := range tree.Nodes {
		if n.Self == 0 {
			continue
		}
		s := &profile.Stack{}
		for at := n; ; at = tree.Nodes[at.Parent] {
			s.Frames = append(s.Frames, profile.Frame{Func: funcs[at.Name], Kind: profile.C2})
			if at.Parent == 0 {
				break
			}
		}
		p.Add("", s, n.Self)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := Collapsed(discard{}, p); err != nil {
			b.Fatal(err)
		}
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
