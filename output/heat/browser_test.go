package heat

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"goprof/output"
	"goprof/output/recording"
	"goprof/profile"
	"goprof/testdata/browser"
	"goprof/testdata/jvmtest"
)

// TestMain ends the browser.
func TestMain(m *testing.M) { browser.Main(m) }

// heatPage is a page in a headless Chromium.
type heatPage struct{ *browser.Page }

func open(t *testing.T, src recording.Source, o Options) heatPage {
	t.Helper()
	return heatPage{browser.Open(t, draw(t, src, o), "", 1280, 800)}
}

// place returns a point of the plot. along is a share of the time. The canvas is "map" or "strips".
func (p heatPage) place(canvas string, along float64, y float64) (float64, float64) {
	p.T.Helper()
	box := browser.Eval[[]float64](p.Page,
		fmt.Sprintf("(() => { const r = document.getElementById(%q).getBoundingClientRect(); return [r.left, r.top, "+
			"r.width]; })()", canvas))
	const gutter, margin = 196, 14 // as in chart.js
	return box[0] + gutter + along*(box[2]-gutter-margin), box[1] + y
}

// drag drags the mouse from one place to another, with or without Shift.
func (p heatPage) drag(canvas string, from, to, y float64, shift bool) {
	p.T.Helper()
	held := []chromedp.MouseOption{chromedp.ButtonType("left"), chromedp.ClickCount(1)}
	if shift {
		held = append(held, chromedp.ButtonModifiers(chromedp.ModifierShift))
	}
	x1, y1 := p.place(canvas, from, y)
	x2, _ := p.place(canvas, to, y)
	p.Do(chromedp.MouseEvent(chromedp.MousePressed, x1, y1, held...),
		chromedp.MouseEvent(chromedp.MouseMoved, (x1+x2)/2, y1, held...),
		chromedp.MouseEvent(chromedp.MouseMoved, x2, y1, held...),
		chromedp.MouseEvent(chromedp.MouseReleased, x2, y1, held...))
}

// between counts the samples of a recording between two times.
func between(f *fake, from, to time.Duration, of func(*profile.Sample) bool) (n int) {
	for i := range f.samples {
		if d := time.Duration(f.samples[i].At.Wall - begin.UnixNano()); d >= from && d < to &&
			(of == nil || of(&f.samples[i])) {
			n++
		}
	}
	return n
}

const timeLine = 20 // y of the time line on the map

func TestPageDraws(t *testing.T) {
	f := shop()
	p := open(t, f, Options{Title: "shop.Main", Line: "cpu mode · 200 Hz · 1m0s · 2026-11-22 03:14:07 UTC · pid 7 on " +
		"<prod-7>", About: [][2]string{{"host", "<prod-7>"}}})
	p.Expect(fmt.Sprintf("samples %d; columns 60 of 1 s, 50 cells each; lanes 3 by pool; lane all threads; A none; B "+
		"none; active A; flame A %[1]d; zoom all; highlight none", len(f.samples)))
	p.Screenshot("heat")
	if got := p.Text("line"); !strings.HasSuffix(got, "<prod-7>") {
		t.Errorf("line %q", got)
	}
	p.Press("?")
	if facts := p.Text("facts"); !strings.Contains(facts, "<prod-7>") ||
		!strings.Contains(facts, "20ms each, 50 in a column of 1s") {
		t.Errorf("about: %s", facts)
	}
	p.Screenshot("heat-about")
}

// TestSelections: the flame graph shows the selected time. If two times are selected, it shows their difference.
func TestSelections(t *testing.T) {
	f := shop()
	p := open(t, f, Options{Title: "shop.Main"})
	p.drag("map", 10.5/60, 19.5/60, timeLine, false)
	p.Expect(fmt.Sprintf("A 500..1000 all threads; B none; active A; flame A %d;",
		between(f, 10*time.Second, 20*time.Second, nil)))
	p.drag("map", 31.5/60, 40.5/60, timeLine, true)
	p.Expect("B 1550..2050 all threads; active A;",
		fmt.Sprintf("flame diff %d before %d;", between(f, 31*time.Second, 41*time.Second, nil),
			between(f, 10*time.Second, 20*time.Second, nil)))
	p.Screenshot("heat-diff")
	p.do("d")
	p.Expect("dark")
	p.Screenshot("heat-diff-dark")
	p.do("1")
	p.Expect("flame A ")
	p.do("2")
	p.Expect("flame B ")
	p.do("3", "s")
	p.Expect("A 1550..2050 all threads; B 500..1000 all threads;", "flame diff ")
	p.do(kb.Escape)
	p.Expect("B none", "flame A ")
	p.do(kb.Escape)
	p.Expect("A none; B none", fmt.Sprintf("flame A %d;", len(f.samples)))
}

func (p heatPage) do(keys ...string) { p.T.Helper(); p.Press(keys...) }

// TestCells: on the heat map, a drag selects several cells, and a click selects one.
func TestCells(t *testing.T) {
	f := shop()
	p := open(t, f, Options{})
	// The map begins below the time line and the marks: 63 in chart.js. Its height depends on the window.
	p.drag("map", 0.5/60, 0.5/60, 63+149, false)
	p.Expect(fmt.Sprintf("A 0..1 all threads; B none; active A; flame A %d;", between(f, 0, 20*time.Millisecond, nil)))
	p.drag("map", 0.5/60, 2.5/60, 63+1, false)
	p.Expect(fmt.Sprintf("A 49..150 all threads; B none; active A; flame A %d;",
		between(f, 980*time.Millisecond, 3*time.Second, nil)))
	p.Screenshot("heat-cells")
}

func TestLanes(t *testing.T) {
	f := shop()
	p := open(t, f, Options{})
	batch := func(s *profile.Sample) bool { return s.Thread.JavaName == "batch" }
	x, y := p.place("strips", -0.1, 2*18+9) // the label of the second lane
	p.Do(chromedp.MouseClickXY(x, y))
	p.Expect("lane batch; A 0..3000 batch; B none;", fmt.Sprintf("flame A %d;", between(f, 0, time.Hour, batch)))
	p.Screenshot("heat-lane")
	p.drag("strips", 35.5/60, 36.5/60, 2*18+9, false)
	p.Expect("A 1750..1850 batch;", fmt.Sprintf("flame A %d;", between(f, 35*time.Second, 37*time.Second, batch)))
	p.do("[")
	p.Expect("lane http-nio-8080-exec-*; A 1750..1850 http-nio-8080-exec-*;")
	p.do("[")
	p.Expect("lane all threads; A 1750..1850 all threads;", fmt.Sprintf("flame A %d;",
		between(f, 35*time.Second, 37*time.Second, nil)))
	p.do("]", "w")
	p.Expect("A 0..3000 http-nio-8080-exec-*;")
}

func TestKeyboard(t *testing.T) {
	f := shop()
	p := open(t, f, Options{})
	p.do(kb.ArrowRight)
	p.Expect(fmt.Sprintf("A 0..50 all threads; B none; active A; flame A %d;", between(f, 0, time.Second, nil)))
	p.do(kb.ArrowRight, kb.ArrowRight)
	p.Expect(fmt.Sprintf("A 100..150 all threads; B none; active A; flame A %d;",
		between(f, 2*time.Second, 3*time.Second, nil)))
	shift := func(key string) { p.Do(chromedp.KeyEvent(key, chromedp.KeyModifiers(chromedp.ModifierShift))) }
	shift(kb.ArrowRight)
	shift(kb.ArrowRight)
	p.Expect(fmt.Sprintf("A 100..250 all threads; B none; active A; flame A %d;",
		between(f, 2*time.Second, 5*time.Second, nil)))
	shift(kb.ArrowLeft)
	p.Expect("A 100..200 ")
	shift(kb.ArrowLeft)
	p.Expect("A 100..150 ")
	shift(kb.ArrowLeft)
	p.Expect("A 50..150 ")
	shift(kb.ArrowUp)
	p.Expect("A 51..150 ")
	p.do(kb.ArrowUp)
	p.Expect("A 51..52 ")
	p.do(kb.ArrowDown)
	p.Expect("A 50..51 ")
	shift(kb.ArrowUp)
	p.Expect("A 50..52 ")
	p.do(kb.End)
	p.Expect("A 2950..3000 ")
	p.do(kb.ArrowRight)
	p.Expect("A 2950..3000 ")
	p.do(kb.PageUp)
	p.Expect("A 2450..2500 ")
	p.do(kb.Home)
	p.Expect("A 0..50 ")
	p.do("b", kb.ArrowRight)
	p.Expect("B 0..50 all threads; active B; flame diff ")
	// The flame graph also handles these keys.
	p.do(kb.Escape, kb.Escape)
	browser.Eval[bool](p.Page, "document.getElementById('scroll').focus(), true")
	p.do(kb.ArrowDown)
	if got := p.Text("frame"); got != "java.lang.Thread.run" {
		t.Errorf("at %q", got)
	}
	p.do(kb.ArrowDown, kb.ArrowRight, kb.Enter)
	batch := between(f, 0, time.Hour, func(s *profile.Sample) bool { return s.Thread.JavaName == "batch" })
	p.Expect("zoom shop.Batch.run", fmt.Sprintf("highlight shop.Batch.run %d;", batch))
	p.Screenshot("heat-highlight")
	p.do(kb.Backspace)
	p.Expect("zoom all; highlight shop.Batch.run")
	p.do(kb.Escape)
	p.Expect("zoom all; highlight none")
}

// TestSearchShowsWhen: the plot marks when the methods found by a search ran.
func TestSearchShowsWhen(t *testing.T) {
	f := shop()
	p := open(t, f, Options{})
	p.Search("^gangworker")
	gc := between(f, 0, time.Hour, func(s *profile.Sample) bool { return s.Thread.JavaName == "" })
	p.Expect(fmt.Sprintf("highlight ^gangworker %d;", gc))
	if got := p.Text("matched"); got != fmt.Sprintf("matched %.2f%%", 100*float64(gc)/float64(len(f.samples))) {
		t.Errorf("told %q", got)
	}
	p.Screenshot("heat-search")
	p.Press("(")
	p.Expect("highlight none")
	if got := p.Text("matched"); got != "not an expression" {
		t.Errorf("told %q", got)
	}
}

func TestTips(t *testing.T) {
	f := shop()
	p := open(t, f, Options{})
	hover := func(canvas string, along, y float64) string {
		t.Helper()
		x, y := p.place(canvas, along, y)
		p.Do(chromedp.MouseEvent(chromedp.MouseMoved, x, y))
		return p.Text("tip")
	}
	first := between(f, 0, 20*time.Millisecond, nil)
	if got := hover("map", 0.5/60, 63+149); !strings.HasPrefix(got, "0.00 s – 0.02 s · ") ||
		!strings.HasSuffix(got, fmt.Sprintf("\n%d samples", first)) {
		t.Errorf("a cell: %q", got)
	}
	if got := hover("map", 4.02/60, 53); !strings.Contains(got, "\ngc: G1 Evacuation Pause (young), 150 ms at 4.000 s") {
		t.Errorf("a mark: %q", got)
	}
	p.Screenshot("heat-mark")
	if got := hover("strips", 50.5/60, 18+9); !strings.HasPrefix(got, "http-nio-8080-exec-*\n50.00 s – 51.00 s") ||
		!strings.HasSuffix(got, "\n0 samples") {
		t.Errorf("a strip: %q", got)
	}
}

// wall is a recording in a wall-clock mode. Its workers mostly wait, and are blocked for some seconds.
func wall() *fake {
	n, r := names{}, rand.New(rand.NewPCG(17, 19))
	f := timed(profile.Meta{MainClass: "shop.Main", Mode: profile.ModeWall, Start: begin, Duration: 30 * time.Second,
		Interval: 20 * time.Millisecond})
	for worker := range 40 {
		thread := profile.Thread{TID: 100 + worker, JavaName: fmt.Sprintf("http-nio-8080-exec-%d", worker+1)}
		for d := time.Duration(0); d < 30*time.Second; {
			span := time.Duration(20+r.IntN(980)) * time.Millisecond
			s := profile.Sample{At: at(d), Thread: thread, Wall: true, State: profile.Parked,
				Stack: n.stack("java.lang.Thread.run", "java.util.concurrent.LinkedBlockingQueue.take")}
			switch {
			case d > 12*time.Second && d < 16*time.Second && worker < 30:
				s.State, s.Stack = profile.Blocked, n.stack("java.lang.Thread.run", "shop.Server.handle", "shop.Pool.borrow")
			case r.IntN(4) == 0:
				span = time.Duration(20+r.IntN(60)) * time.Millisecond
				s.State, s.Stack = profile.Running, n.stack("java.lang.Thread.run", "shop.Server.handle", "shop.Json.write")
			}
			s.Span = min(span, 30*time.Second-d)
			f.samples = append(f.samples, s)
			d += span
		}
	}
	return f
}

// TestStates: for a wall-clock recording, the page first shows the threads that have work.
func TestStates(t *testing.T) {
	f := wall()
	p := open(t, f, Options{Title: "shop.Main", Line: "wall mode", Threads: true})
	p.Expect("lanes 40 by thread", "states running,blocked;")
	p.Screenshot("heat-wall")
	all := browser.Eval[string](p.Page, "document.getElementById('summary').textContent")
	browser.Eval[bool](p.Page, "[...document.querySelectorAll('#states button')]"+
		".find(b => b.textContent === 'parked').click(), true")
	p.Expect("states running,blocked,parked;")
	if browser.Eval[string](p.Page, "document.getElementById('summary').textContent") == all {
		t.Error("nothing has changed")
	}
	// Forty threads for thirty seconds.
	if got := browser.Eval[float64](p.Page,
		"Number(/^ns ([0-9.]+)/.exec(document.getElementById('summary').textContent)[1])"); got < 1199e9 || got > 1201e9 {
		t.Errorf("%g ns", got)
	}
	p.do(kb.ArrowRight)
	if got := browser.Eval[float64](p.Page,
		"Number(/flame A ([0-9.]+)/.exec(document.getElementById('summary').textContent)[1])"); got < 39.5e9 || got > 40.5e9 {
		t.Errorf("%g ns of threads' time in a second", got)
	}
	p.Screenshot("heat-wall-all")
}

// TestHostileNames: names come from the target, and stay text.
func TestHostileNames(t *testing.T) {
	hostile := []string{
		`</script><script>window.pwned=1</script>`, `<img src=x onerror=window.pwned=1>`, `"><svg onload=window.pwned=1>`,
		"${window.pwned=1}", `\u003c/script>`, "<!--<script>", "\u2028window.pwned=1", "@DATA@ @SCRIPT@", "__proto__", "constructor", "日本.Größe😀", "a;b\x1b[31m",
	}
	n := names{}
	f := timed(profile.Meta{})
	for i, name := range hostile {
		f.samples = append(f.samples, profile.Sample{At: at(time.Duration(i) * time.Second),
			Stack: n.stack(name, name+".run"), Thread: profile.Thread{TID: i + 1, JavaName: name}})
		f.marks = append(f.marks, recording.Mark{Kind: name, Text: name, At: at(time.Duration(i) * time.Second)})
	}
	title := hostile[0] + hostile[1] + "&amp;"
	p := open(t, f, Options{Title: title, Line: hostile[2], About: [][2]string{{hostile[0], hostile[1]}}})
	p.Expect(fmt.Sprintf("samples %d; columns 11 of 1 s", len(hostile)), fmt.Sprintf("lanes %d by pool", len(hostile)))
	if got := browser.Eval[string](p.Page, "document.title"); got != title {
		t.Errorf("title %q", got)
	}
	p.Screenshot("heat-hostile")
	for range hostile {
		p.do("]")
	}
	for along := 0.0; along < 1; along += 0.02 {
		x, y := p.place("map", along, 53)
		p.Do(chromedp.MouseEvent(chromedp.MouseMoved, x, y))
	}
	p.do("?")
}

// TestSixHundredThousandSamples: ten minutes at 1,000 Hz fit into 8 MB (in make prove; make test has a quarter of the
// samples, which are handled in the same way and need less room). The test logs how long the page takes, but does not
// check it.
func TestSixHundredThousandSamples(t *testing.T) {
	jvmtest.NotQuick(t, jvmtest.TakesLong)
	samples := 150_000
	if os.Getenv("GOPROF_PROVE") != "" {
		samples = 600_000
	}
	f := busy(samples)
	html := draw(t, f, Options{Title: "busy"})
	t.Logf("%d bytes", len(html))
	if len(html) > 8_000_000*samples/600_000 {
		t.Errorf("%d bytes", len(html))
	}
	p := heatPage{browser.Open(t, html, "", 1280, 800)}
	p.Expect(fmt.Sprintf("samples %d; columns 600 of 1 s, 50 cells each; lanes 12 by pool", samples))
	ms := func(name string) float64 {
		return browser.Eval[float64](p.Page, fmt.Sprintf("performance.getEntriesByName('goprof-%s')[0].duration", name))
	}
	t.Logf("unpacked after %.0f ms, drawn after %.0f ms; %.0f ms after the navigation began", ms("load"), ms("draw"),
		browser.Eval[float64](p.Page, "performance.getEntriesByName('goprof-drawn')[0].startTime"))
	p.Screenshot("heat-busy")
	p.drag("map", 0.2, 0.3, timeLine, false)
	p.Expect("A 6000..9050 ")
	took := func(what string) {
		t.Logf("%s: %s ms", what, browser.Eval[string](p.Page, "document.getElementById('summary').dataset.ms"))
	}
	took("selection of a minute")
	p.drag("map", 0.6, 0.7, timeLine, true)
	p.Expect("flame diff ")
	took("difference of two")
	p.Search("handle7")
	p.Expect("highlight handle7 ")
	took("search")
	p.Screenshot("heat-busy-diff")
}

// busy is a recording of ten minutes of a server, with stacks as deep and as diverse as a server's.
func busy(samples int) *fake {
	n, r := names{}, rand.New(rand.NewPCG(11, 12))
	interval := 10 * time.Minute / time.Duration(samples)
	f := timed(profile.Meta{Start: begin, Duration: 10 * time.Minute, Interval: interval})
	label := func(i int) string {
		return fmt.Sprintf("com.example.shop.module%d.Service%d.handle%d", i%40, i%700, i)
	}
	path := []string{"java.lang.Thread.run"}
	var stacks []*profile.Stack
	for range 60_000 { // each stack leaves the previous one at some depth, which is mostly large
		keep := 1 - min(r.ExpFloat64()/8, 1)
		path = path[:max(1, int(float64(len(path))*keep))]
		for depth := 1 + r.IntN(20); depth > 0 && len(path) < 80; depth-- {
			path = append(path, label(int(r.ExpFloat64()*400)%5000))
		}
		stacks = append(stacks, n.stack(path...))
	}
	for i := range samples {
		s := profile.Sample{At: at(time.Duration(i)*interval + time.Duration(r.Int64N(int64(interval))))}
		s.Stack = stacks[min(int(r.ExpFloat64()*9000), len(stacks)-1)]
		pool := min(int(r.ExpFloat64()*2), 11)
		s.Thread = profile.Thread{TID: 100*pool + r.IntN(16) + 1, JavaName: fmt.Sprintf("pool-%c-thread-%d", 'a'+pool,
			r.IntN(16))}
		if i%(samples/10) < samples/50 { // work that runs once a minute
			s.Stack = stacks[r.IntN(300)]
		}
		f.samples = append(f.samples, s)
	}
	return f
}

// TestAllFrames: key a shows the frames that the flame graph leaves out, for the selected time. The legend has the
// guesses, and the line at the bottom shows how much of a frame is a guess.
func TestAllFrames(t *testing.T) {
	n := names{}
	f := timed(profile.Meta{Start: begin, Duration: 10 * time.Second})
	for i := range 20 {
		s := n.stack("__clone3", "start_thread", "call_stub", "a.B.run", "a.B.c")
		for k := range s.Frames[2:] {
			s.Frames[2+k].Kind = profile.Native
		}
		if s.Frames[0].Kind = profile.Inlined; i == 0 {
			s.Frames[0].Sure = profile.Guessed
		}
		f.samples = append(f.samples, profile.Sample{At: at(time.Duration(i) * 500 * time.Millisecond), Stack: s})
	}
	p := open(t, f, Options{Shape: output.Shape{}.Drawn()})
	p.Expect("drawn 4 boxes; ")
	p.drag("map", 0.01, 0.49, timeLine, false)
	p.Expect("flame A 10")
	p.do("a") // in the heat map, this key chooses a selection
	p.Expect("drawn 4 boxes; ")
	p.Do(chromedp.Focus("#scroll"))
	p.do("a")
	p.Expect("flame A 10", "drawn 6 boxes, all frames")
	p.do("a", kb.ArrowDown, kb.ArrowDown, kb.ArrowDown)
	p.Expect("flame A 10", "drawn 4 boxes; ")
	if text := browser.Eval[string](p.Page, "document.querySelector('footer').textContent"); !strings.Contains(text,
		"10.00% of it guessed") || !strings.Contains(text, "guess: another method") {
		t.Errorf("the footer says %q", text)
	}
}

// TestPictures draws a page in windows of two sizes, light and dark, for people to look at.
func TestPictures(t *testing.T) {
	for _, size := range [][2]int{{1280, 800}, {1920, 1080}} {
		p := heatPage{browser.Open(t, draw(t, shop(), Options{Title: "shop.Main",
			Line: "cpu mode · 200 Hz · 1m0s · 2026-11-22 03:14:07 UTC · pid 7 on prod-7"}), "", size[0], size[1])}
		p.Expect("A none; B none")
		p.drag("map", 10.5/60, 19.5/60, 90, false)
		p.drag("strips", 31.5/60, 40.5/60, 9, true)
		p.Expect("flame diff")
		p.Do(chromedp.MouseEvent(chromedp.MouseMoved, 5, 5))
		for _, theme := range []string{"light", "dark"} {
			p.Screenshot(fmt.Sprintf("heat-%d-%s", size[0], theme))
			// No text is cut off, and no element covers another.
			if over := browser.Eval[string](p.Page, `(() => {
				const parts = ['#what', '#find', 'nav', '#times', '#lanes', '.chips', '#key', 'main', 'footer'].map(s => [s, document.querySelector(s).getBoundingClientRect()]);
				const bad = parts.filter(([, r]) => r.left < 0 || r.right > innerWidth + 0.5 || r.bottom > innerHeight + 0.5).map(([s]) => s);
				for (const [s, a] of parts) for (const [q, b] of parts)
					if (s < q && a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1) bad.push(s + ' over ' + q);
				return bad.join(', ');
			})()`); over != "" {
				t.Errorf("%v %s: %s", size, theme, over)
			}
			p.do("d")
		}
	}
}
