package output

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"goprof/profile"
)

// FuzzCollapsed writes profiles with arbitrary names and reads them back.
func FuzzCollapsed(f *testing.F) {
	f.Add([]byte("java.lang.Thread.run\x00a.B.<init>\x01java.lang.Object.wait0"), uint16(3))
	f.Add([]byte("a;b 9\nc\x00native_[j]\x00\x00tab\t\x01\xff\x00\xe2\x80\xae\x01[main tid=7]\x01[truncated: x]"),
		uint16(0xfff))
	f.Add([]byte("x\x00x\x01x\x00x\x01x 5"), uint16(7))
	f.Fuzz(func(t *testing.T, text []byte, kinds uint16) {
		p := profile.New()
		want := map[string]int64{}
		total := int64(0)
		for i, stack := range bytes.Split(text, []byte{1}) {
			s := &profile.Stack{Frames: []profile.Frame{}}
			path := ""
			for k, name := range bytes.Split(stack, []byte{0}) {
				kind := profile.Kind((int(kinds>>(k%8)) + k) % 8)
				fn := &profile.Func{Name: string(name)}
				s.Frames = append([]profile.Frame{{Func: fn, Kind: kind}}, s.Frames...)
				label := ParseLabel(Label(fn, kind))
				path += ";" + fmt.Sprint(label.Text, "/", label.Kind)
			}
			n := int64(i + 1)
			p.Add("", s, n)
			want[path] += n
			total += n
		}
		var b bytes.Buffer
		if err := Collapsed(&b, p); err != nil {
			t.Fatal(err)
		}
		if lines := bytes.Count(b.Bytes(), []byte{'\n'}); lines > len(want) || !utf8.Valid(b.Bytes()) {
			t.Fatalf("%d lines for %d stacks: %q", lines, len(want), b.Bytes())
		}
		tree, err := ParseCollapsed(&b)
		if err != nil || tree.Total != total {
			t.Fatalf("%v of %d, %v", tree, total, err)
		}
		if diff := cmp.Diff(want, treeStacks(tree)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// FuzzSummary reads arbitrary files, shows them, and writes them again.
func FuzzSummary(f *testing.F) {
	s := someSummary()
	var b bytes.Buffer
	if err := WriteSummary(&b, &s); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(`{"recording":{"duration_ns":9223372036854775807},"pauses":{"p50_ns":-1,"max_ns":9000000000000000000},"lost_by":{"a\u0000\n":1}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		s, err := ReadSummary(bytes.NewReader(in))
		if err != nil {
			return
		}
		var text strings.Builder
		if err := errors.Join(SummaryText(&text, s), SummaryDetails(&text, s)); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsFunc(text.String(), func(r rune) bool { return r != '\n' && unicode.IsControl(r) }) {
			t.Fatalf("%q", text.String())
		}
		var b bytes.Buffer
		if err := WriteSummary(&b, s); err != nil {
			t.Fatal(err)
		}
		again, err := ReadSummary(&b)
		if same := cmpopts.EquateEmpty(); err != nil || !cmp.Equal(s, again, same) {
			t.Fatalf("%v\n%s", err, cmp.Diff(s, again, same))
		}
	})
}
