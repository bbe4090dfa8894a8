package annotate

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"goprof/profile"
)

var (
	run  = &profile.Func{Name: "a.b.Hot.run", File: "Hot.java"}
	sum  = &profile.Func{Name: "a.b.Hot.sum", File: "Hot.java"}
	main = &profile.Func{Name: "a.b.Main.main", File: "Main.java"}
	copy = &profile.Func{Name: "jint_arraycopy"}
)

func java(fn *profile.Func, kind profile.Kind, line, bci int32) profile.Frame {
	return profile.Frame{Func: fn, Kind: kind, Line: line, BCI: bci}
}

// collected has samples of sum: interpreted, compiled, inlined into run, in a stub that it calls, and recursive.
func collected(name string) *Collector {
	c := New(name)
	root := java(main, profile.Interpreted, 3, 1)
	guess := java(sum, profile.Inlined, 11, 9)
	guess.Sure = profile.Guessed
	for _, s := range []struct {
		n      int64
		frames []profile.Frame
	}{
		{1, []profile.Frame{java(sum, profile.Interpreted, 10, 2), root}},
		{20, []profile.Frame{java(sum, profile.C2, 10, 4), root}},
		{30, []profile.Frame{guess, java(run, profile.C2, 20, 5), root}},
		{4, []profile.Frame{{Func: copy, Kind: profile.Stub, BCI: -1}, java(sum, profile.C2, 12, 15), root}},
		{5, []profile.Frame{java(sum, profile.C1, 10, 4), java(sum, profile.C1, 12, 18), java(sum, profile.C1, 12, 18),
			root}},
		{40, []profile.Frame{root}},
	} {
		c.Add(&profile.Stack{Frames: s.frames}, s.n)
	}
	return c
}

func TestPage(t *testing.T) {
	p := collected("Hot::sum(int[])").Page("a.b.Hot.sum")
	if p == nil || p.All != 100 || p.Self != 60 || p.Total != 60 || p.Likely != 25 || p.Guessed != 30 {
		t.Fatalf("%+v", p)
	}
	want := `a.b.Hot.sum   Hot.java
100 samples: 60.0% in its own code, 60.0% with what it calls
     30.0%  inlined into a.b.Hot.run
     29.0%  in machine code of its own
      1.0%  interpreted

      self               total          line
        26   26.0%~         26   26.0%     10
         1    1.0%           1    1.0%              2:
        25   25.0%~         25   25.0%              4:
        30   30.0%?         30   30.0%     11
        30   30.0%?         30   30.0%              9:
         4    4.0%           9    9.0%     12
         4    4.0%           4    4.0%             15:
                             5    5.0%             18:

~  the line is inferred: of compiled code, the JVM records the lines of calls and safepoints alone
?  a guess: which inlined method was running is not known, either
`
	var b bytes.Buffer
	if err := p.Text(&b, false); err != nil || b.String() != want {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func TestCandidates(t *testing.T) {
	for name, want := range map[string]string{"Hot.sum": "a.b.Hot.sum", "Hot#run": "a.b.Hot.run", "sum": "a.b.Hot.sum",
		"Hot": "a.b.Hot.sum a.b.Hot.run", "a/b/Main.main()": "a.b.Main.main", "ma": "a.b.Main.main",
		"b.Ho":           "a.b.Hot.sum a.b.Hot.run",
		"jint_arraycopy": "", "nothing": ""} {
		var got []string
		for _, c := range collected(name).Candidates() {
			got = append(got, c.Name)
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s: %s, not %s", name, text, want)
		}
	}
}

// TestStacksSettle: where a compiled method has many guesses, they count for that method, as in all reports.
func TestStacksSettle(t *testing.T) {
	c := New("Hot")
	s := NewStacks(c)
	guess := java(sum, profile.Inlined, 11, 9)
	guess.Sure = profile.Guessed
	for range 3 {
		s.Add(&profile.Stack{Frames: []profile.Frame{guess, java(run, profile.C2, 20, 5)}}, 10)
	}
	s.Add(&profile.Stack{Frames: []profile.Frame{java(sum, profile.C2, 10, 4)}}, 70)
	s.Collect()
	if p := c.Page("a.b.Hot.sum"); p.Self != 70 || p.Total != 70 || c.Unnamed != 30 {
		t.Errorf("%+v, %d unnamed", p.Count, c.Unnamed)
	}
	if p := c.Page("a.b.Hot.run"); p.Self != 30 || p.Guessed != 0 || p.Methods[0].Rows[0].BCI != 5 {
		t.Errorf("%+v", p)
	}
}

// TestWaiting: a waiting thread's time counts for the method in which threads do not just wait.
func TestWaiting(t *testing.T) {
	park := &profile.Func{Name: "java.util.concurrent.locks.LockSupport.park"}
	s := &profile.Stack{Frames: []profile.Frame{java(park, profile.C2, 1, 1), java(run, profile.C2, 20, 5)}}
	if waits, runs := Top(s, true), Top(s, false); waits != 1 || runs != 0 {
		t.Errorf("%d, %d", waits, runs)
	}
}

// TestRowsLeftOut: of a long method, rows far from samples are left out.
func TestRowsLeftOut(t *testing.T) {
	m := Method{Lines: []Line{{Line: 7, Count: Count{Self: 9, Total: 9}}}}
	for i := range int32(40) {
		m.Rows = append(m.Rows, Row{Line: 7, BCI: i, Bytecode: "nop"})
	}
	m.Rows[20].Count = Count{Self: 9, Total: 9}
	p := &Page{Method: "a.B.c", All: 9, Methods: []Method{m}}
	for all, want := range map[bool]int{false: 2*around + 1, true: 40} {
		var b bytes.Buffer
		p.Text(&b, all)
		if n := strings.Count(b.String(), "nop"); n != want || strings.Contains(b.String(), "...") == all {
			t.Errorf("%d rows\n%s", n, b.String())
		}
	}
}

// TestSource: the file's name is the target's, and leads nowhere outside of the folder.
func TestSource(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "sources", "src", "main", "java", "a", "b")
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{filepath.Join(deep, "Hot.java"): strings.Repeat("\n", 9) +
		"  x += y;\x1b[2J\n",
		filepath.Join(dir, "secret"): strings.Repeat("secret\n", 30)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	os.Symlink(filepath.Join(dir, "secret"), filepath.Join(deep, "Link.java"))
	p := collected("sum").Page("a.b.Hot.sum")
	if err := p.ReadSource(filepath.Join(dir, "sources")); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if p.Text(&b, false); !strings.Contains(b.String(), "   10  x += y;?[2J\n") {
		t.Errorf("%s", b.String())
	}
	for _, file := range []string{"", "../../../../../../secret", "Link.java", "None.java", "/etc/passwd", "."} {
		p := collected("sum").Page("a.b.Hot.sum")
		p.File = file
		if err := p.ReadSource(filepath.Join(dir, "sources")); err == nil {
			t.Errorf("%q was read: %+v", file, p.Methods[0].Lines)
		}
	}
}
