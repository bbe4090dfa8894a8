package machine

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"goprof/annotate"
	"goprof/profile"
)

// seen is a page as a Collector makes it: each row is one stack of n samples.
func seen(linesAlone bool, rows ...annotate.Row) *annotate.Page {
	c := annotate.New("A.<init>")
	c.LinesAlone = linesAlone
	for _, r := range rows {
		c.Add(&profile.Stack{Frames: []profile.Frame{{Func: &profile.Func{Name: "A.<init>", File: "A.java"},
			Kind: profile.Interpreted, Line: r.Line, BCI: r.BCI}}}, r.Self)
	}
	return c.Page("A.<init>")
}

func at(line, bci int32, n int64) annotate.Row {
	return annotate.Row{Line: line, BCI: bci, Count: annotate.Count{Self: n}}
}

func body(signature string, rows ...annotate.Row) annotate.Method {
	for i := range rows {
		rows[i].Bytecode = "nop"
	}
	return annotate.Method{Signature: signature, Rows: rows}
}

// TestSpread: a sample is given to an overload only if no other has its place.
func TestSpread(t *testing.T) {
	constructors := []annotate.Method{ // line 3 is a field's initializer
		body("()V", at(5, 0, 0), at(3, 4, 0), at(6, 9, 0)),
		body("(I)V", at(8, 0, 0), at(3, 4, 0), at(9, 9, 0)),
	}
	noLines := []annotate.Method{body("()V", at(0, 0, 0), at(0, 4, 0)), body("(I)V", at(0, 0, 0))}
	oneLine := []annotate.Method{body("()V", at(3, 0, 0), at(3, 4, 0)), body("(I)V", at(3, 0, 0), at(3, 5, 0))}
	for name, c := range map[string]struct {
		linesAlone bool
		bodies     []annotate.Method
		rows       []annotate.Row
		want       string // of each group: its lines, then its rows, by line, index and samples
	}{
		"shared initializer": {false, constructors, []annotate.Row{at(3, 4, 90), at(6, 9, 7), at(9, 9, 2)},
			"()V 6=7 6@9=7; (I)V 9=2 9@9=2; which overload is not known 3=90 3@4=90 nop"},
		"nothing but shared": {false, constructors, []annotate.Row{at(3, 4, 90)},
			"which overload is not known 3=90 3@4=90 nop"},
		"nothing of them": {false, constructors, []annotate.Row{at(3, 5, 9)},
			"()V; places that the method does not have now 3=9 3@5=9"},
		"no place, overloads": {false, constructors, []annotate.Row{at(8, 0, 3), at(5, -1, 4)},
			"(I)V 8=3 8@0=3; which overload is not known 0=4 0@-1=4"},
		"no place, one body": {false, constructors[:1], []annotate.Row{at(6, 9, 3), at(5, -1, 4)},
			"()V 0=4 6=3 0@-1=4 6@9=3"},
		"no line tables": {false, noLines, []annotate.Row{at(0, 0, 3), at(0, 4, 4), at(0, -1, 5)},
			"()V 0=4 0@4=4; which overload is not known 0=8 0@-1=5 0@0=3 nop"},
		"one without a table": {false, noLines[:1], []annotate.Row{at(0, 0, 3), at(0, -1, 5)},
			"()V 0=8 0@-1=5 0@0=3"},
		"a line of several": {false, oneLine, []annotate.Row{at(3, 0, 1), at(3, 4, 2), at(3, 5, 4)},
			"()V 3=2 3@4=2; (I)V 3=4 3@5=4; which overload is not known 3=1 3@0=1 nop"},
		"lines alone": {true, constructors, []annotate.Row{at(3, -1, 5), at(6, -1, 7)},
			"()V 6=7 6@-1=7; which overload is not known 3=5 3@-1=5"},
	} {
		t.Run(name, func(t *testing.T) {
			p := seen(c.linesAlone, c.rows...)
			spread(p, c.bodies)
			if got := groups(p); got != c.want {
				t.Errorf("%s, not %s", got, c.want)
			}
			var b bytes.Buffer
			if p.Text(&b, false); strings.Contains(c.want, "overload") != strings.Contains(b.String(),
				"which of them ran is not known") {
				t.Errorf("%s", b.String())
			}
		})
	}
}

// groups are the methods of a page in short.
func groups(p *annotate.Page) string {
	var list []string
	for _, m := range p.Methods {
		note, _, _ := strings.Cut(m.Note, ":")
		text := m.Signature + note
		for _, l := range m.Lines {
			text += fmt.Sprintf(" %d=%d", l.Line, l.Self)
		}
		for _, r := range m.Rows {
			if r.Self > 0 {
				text += fmt.Sprintf(" %d@%d=%d", r.Line, r.BCI, r.Self)
				if m.Signature == "" && r.Bytecode != "" {
					text += " " + r.Bytecode
				}
			}
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}

// TestRecursionInALine: a sample whose method is twice in a line counts once for the line.
func TestRecursionInALine(t *testing.T) {
	c := annotate.New("A.f")
	frame := profile.Frame{Func: &profile.Func{Name: "A.f"}, Kind: profile.Interpreted, Line: 3}
	caller := frame
	caller.BCI = 4
	c.Add(&profile.Stack{Frames: []profile.Frame{frame, caller}}, 10)
	p := c.Page("A.f")
	spread(p, []annotate.Method{body("()V", at(3, 0, 0), at(3, 4, 0))})
	if l := p.Methods[0].Lines; len(l) != 1 || l[0].Total != 10 {
		t.Errorf("%+v", l)
	}
}
