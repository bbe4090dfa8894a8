package top

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"goprof/output"
	"goprof/profile"
)

// example is a reading with odd names.
func example() *Reading {
	r := &Reading{PID: 4711, Main: "shop.Main\x1b[2J", JVM: "21.0.1", Collector: "G1", Uptime: 200 * time.Second, CPUs: 8,
		Span: time.Second, CPU: 1.73, Alloc: 120 << 20, AllocKnown: true, Window: 10 * time.Second, Samples: 200,
		GC:     GC{Known: true, CPU: 0.04, Counted: true, Collections: 3},
		Pauses: Pauses{Count: 41, P99: 60 * time.Microsecond, Max: 500 * time.Microsecond, Held: 0.0002},
		Own:    Cost{CPU: 0.021, Memory: 34 << 20}}
	names := []string{"http-1", "evil\x1b]0;x\a\r\n\u202e", "名前の長いスレッド", "z\u0301\u0301\u0301algo", "", "main\xff"}
	for i, name := range names {
		r.Threads = append(r.Threads, Thread{TID: 100 + i, Name: name, State: "running", CPU: float64(i) / 10,
			Frame: "com.example.shop.Cart.total", Alloc: float64(i << 20), AllocKnown: i != 3})
	}
	n := int64(187)
	r.Pools = []Pool{{Name: "idle\x1b[2J", Count: 4}, {Name: "http-*", Busy: 199, Count: 200},
		{Name: "HikariPool-1", Busy: 10, Count: 10, Queued: &n, Connections: true}}
	r.Methods = []Method{{"com.example.shop.Cart.total", 0.6, 0.9}, {"libc\x1b[2J", 0.1, 0.1}}
	return r
}

// TestDrawFits: for any size and contents of the screen, no line is too wide, there are not too many lines, and no text
// moves the cursor.
func TestDrawFits(t *testing.T) {
	m := New()
	check := func(what string) {
		t.Helper()
		for columns := 0; columns <= 140; columns += 3 {
			for rows := 0; rows <= 40; rows += 3 {
				lines := m.Draw(columns, rows)
				if len(lines) > max(rows, 1) {
					t.Fatalf("%s at %d x %d: %d lines", what, columns, rows, len(lines))
				}
				for _, l := range lines {
					if w := width(l.Text()); w > max(columns, 1) || strings.ContainsFunc(l.Text(), output.Unsafe) {
						t.Fatalf("%s at %d x %d: %q has %d columns", what, columns, rows, l.Text(), w)
					}
				}
			}
		}
	}
	check("before the first reading")
	m.Show(&Reading{})
	check("an empty reading")
	m.Show(example())
	for _, key := range []string{"a", "n", "n", "s", "t", "tab", "tab", "tab", "?", "x", "/", "e", "enter", "space",
		"end", "down", "pgdown", "home", "up"} {
		m.Key(key, strings.TrimPrefix(key, "enter"))
		check("after " + key)
	}
	a := m.Key("enter", "")
	check("a stack that is coming")
	frame := profile.Frame{Func: &profile.Func{Name: "a.B.c\x1b[2J", File: "B\n.java"}, Line: 3}
	m.ShowStack(&Stack{TID: a.TID, Frames: []profile.Frame{frame, {}}})
	check("a stack")
	m.ShowStack(&Stack{TID: a.TID, Err: "it has\nended"})
	check("no stack")
}

// TestSelection: the selected thread stays selected when other threads change places. It is always drawn.
func TestSelection(t *testing.T) {
	m, r := New(), &Reading{}
	for i := range 300 {
		r.Threads = append(r.Threads, Thread{TID: i + 1, Name: fmt.Sprint("t", i), CPU: float64(300-i) / 300})
	}
	m.Show(r)
	m.Key("down", "")
	m.Key("down", "")
	next := *r
	next.Threads = append([]Thread(nil), r.Threads...)
	next.Threads[2].CPU = 0
	m.Show(&next)
	for _, rows := range []int{24, 10, 60, 5} {
		found := false
		for _, l := range m.Draw(80, rows) {
			found = found || strings.HasPrefix(l.Text(), ">") && strings.HasSuffix(l.Text(), " t2")
		}
		if !found {
			t.Errorf("the selected thread is not among %d rows", rows)
		}
	}
	if a := m.Key("enter", ""); a != (Action{Look, 3}) {
		t.Errorf("Enter asks for %+v", a)
	}
	if a := m.Key("esc", ""); a != (Action{Kind: Look}) {
		t.Errorf("Esc asks for %+v", a)
	}
}

// TestTypingIsNoCommand: while the user types a filter, letters are text. Otherwise they are keys.
func TestTypingIsNoCommand(t *testing.T) {
	m := New()
	m.Show(example())
	m.Key("/", "/")
	for _, key := range []string{"q", "d", "r", "?", "\x1b[2J", strings.Repeat("x", 200)} {
		if a := m.Key(key, key); a.Kind != None {
			t.Errorf("%q asks for %+v", key, a)
		}
	}
	if m.filter != "qdr??[2J" {
		t.Errorf("the filter is %q", m.filter)
	}
	if a := m.Key("ctrl+c", ""); a.Kind != Quit {
		t.Errorf("Ctrl-C asks for %+v", a)
	}
}

func TestWindow(t *testing.T) {
	a, b, c := &profile.Func{Name: "a"}, &profile.Func{Name: "b"}, &profile.Func{Name: "c"}
	stack := func(fns ...*profile.Func) *profile.Stack {
		s := &profile.Stack{}
		for _, fn := range fns {
			s.Frames = append(s.Frames, profile.Frame{Func: fn})
		}
		return s
	}
	w := NewWindow(10 * time.Second)
	w.Add(time.Second, stack(c, a), 1) // too old at the end
	w.Add(9*time.Second, stack(a, b, b, a, b), 3)
	w.Add(12*time.Second, stack(b), 1)
	methods, samples := w.Methods(15 * time.Second)
	if got := fmt.Sprint(methods, samples); got != "[{a 0.75 0.75} {b 0.25 1}] 4" {
		t.Error(got)
	}
	if methods, samples := w.Methods(time.Hour); samples != 0 || len(methods) != 0 {
		t.Errorf("after an hour: %v, %d", methods, samples)
	}
}

// TestWindowIsBounded: a program with more and more methods does not fill memory.
func TestWindowIsBounded(t *testing.T) {
	w := NewWindow(time.Second)
	for i := range 3 * maxMethods {
		w.Add(0, &profile.Stack{Frames: []profile.Frame{{Func: &profile.Func{Name: fmt.Sprint(i)}}}}, 1)
	}
	if methods, samples := w.Methods(0); len(methods) != maxMethods || samples != 3*maxMethods {
		t.Errorf("%d methods of %d samples", len(methods), samples)
	}
}

func TestJSON(t *testing.T) {
	var b bytes.Buffer
	if err := JSON(&b, &Reading{}); err != nil || strings.Join(strings.Fields(b.String()), "") != `{"threads":[],"methods":[]}` {
		t.Errorf("%v %s", err, b.String())
	}
	b.Reset()
	r := example()
	if err := JSON(&b, r); err != nil || strings.ContainsFunc(strings.ReplaceAll(b.String(), "\n", ""), output.Unsafe) {
		t.Errorf("%v %s", err, b.String())
	}
	var got struct {
		Threads []struct {
			Name string
			Rate *int64 `json:"alloc_rate"`
		}
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Threads[4].Name != r.Threads[1].Name || got.Threads[2].Rate != nil || *got.Threads[3].Rate != 2<<20 {
		t.Errorf("%+v", got)
	}
}

func TestText(t *testing.T) {
	var b bytes.Buffer
	r := example()
	r.Window = 300 * time.Millisecond
	if err := Text(&b, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"goprof top  4711 shop.Main?[2J", "名前の長いスレッド", "zalgo",
		"200 samples of the last 300ms", "pools   HikariPool-1: 10 of 10 lent, 187 wait; http-*: 199 of 200 busy\n",
		"60.0    90.0  com.example.shop.Cart.total"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}

func TestBytesText(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 1: "1B", 1023: "1023B", 1024: "1.0K", 10240: "10K", 1 << 20: "1.0M",
		1.5e12: "1.4T", 1e30: "much"} {
		if got := bytesText(n); got != want || len(got) > 6 {
			t.Errorf("%v is %q, want %q", n, got, want)
		}
	}
}

// FuzzFit: any text takes exactly the wanted columns, and does not move the cursor.
func FuzzFit(f *testing.F) {
	for _, s := range []string{"", "main", "\x1b[2J", "名前", "a\u0301", "👩‍👩‍👧", "\xff\xfe", "\u202eabc"} {
		f.Add(s, 5)
	}
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = min(max(n, 0), 200)
		text := clean(s)
		if strings.ContainsFunc(text, output.Unsafe) || !utf8.ValidString(text) {
			t.Fatalf("%q is not clean", text)
		}
		for name, got := range map[string]string{"fit": fit(text, n), "fitEnd": fitEnd(text, n)} {
			if width(got) != n {
				t.Errorf("%s(%q, %d) is %q: %d columns", name, text, n, got, width(got))
			}
		}
	})
}
