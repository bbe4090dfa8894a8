package flame

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"goprof/output"
	"goprof/profile"
	"goprof/testdata/browser"
)

// TestMain ends the browser.
func TestMain(m *testing.M) { browser.Main(m) }

// flamePage is a flame graph in a headless Chromium.
type flamePage struct{ *browser.Page }

// open draws a page and opens it.
func open(t *testing.T, tree *output.Tree, o Options, fragment string) flamePage {
	t.Helper()
	return flamePage{browser.Open(t, drawPage(t, tree, o), fragment, 1200, 700)}
}

func eval[T any](p flamePage, script string) T { p.T.Helper(); return browser.Eval[T](p.Page, script) }

func shop(t *testing.T) *output.Tree {
	t.Helper()
	return parse(t, `[main tid=1];Shop.main_[0];Shop.sell_[1];Basket.total_[j];Price.add_[i] 400
[main tid=1];Shop.main_[0];Shop.sell_[1];Basket.total_[j];memcpy 100
[main tid=1];Shop.main_[0];Shop.log_[1];memcpy 300
[gc tid=2];GCThread::run;memcpy 200
`)
}

// A page weighted by CPU time has figures in seconds.
func TestPageOfCPUTime(t *testing.T) {
	tree := parse(t, "Shop.main_[0];Shop.sell_[1] 1500000000\nShop.main_[0] 499000000\n[not sampled] 1000000\n")
	tree.Weight = profile.CPUTime
	b := open(t, tree, Options{Title: "Shop"}, "#q=sell")
	b.Expect("cpu 2000000000 ns; frames 3; matches 1 frames, 1.50 s of CPU, 75.00%; zoom all 2.00 s of CPU, 100.00%")
	var svg strings.Builder
	if err := SVG(&svg, tree, Options{}); err != nil ||
		!strings.Contains(svg.String(), "Shop.sell (1.5 s of CPU, 75.0%)") {
		t.Errorf("%v\n%s", err, svg.String())
	}
}

// A page weighted by time does not mention CPU time.
func TestPageOfTime(t *testing.T) {
	tree := parse(t, "Shop.main_[0];[parked] 1500000000\n")
	tree.Weight = profile.WallTime
	b := open(t, tree, Options{Title: "Shop"}, "")
	b.Expect("zoom all 1.50 s of threads' time, 100.00%")
}

// TestPageOfBytes: a page of allocations has figures in bytes, and does not mention samples.
func TestPageOfBytes(t *testing.T) {
	tree := parse(t, "Shop.main_[0];Shop.sell_[1];byte[] 1572864\nShop.main_[0];int[] 524288\n")
	tree.Weight = profile.Bytes
	b := open(t, tree, Options{Title: "Shop"}, "#q=sell")
	b.Expect("bytes 2097152; frames 4; matches 1 frames, 1.50 MiB allocated, 75.00%; zoom all 2.00 MiB allocated, 100.00%")
}

func TestPageDraws(t *testing.T) {
	b := open(t, shop(t), Options{Title: "Shop", About: [][2]string{{"host", "prod-<7>"}}}, "")
	b.Expect("samples 1000; frames 11; matches none; zoom all 1000 samples, 100.00%; view flame light; drawn 12 " +
		"boxes, 6 rows")
	b.Screenshot("flame")
	if title := eval[string](b, "document.title"); title != "Shop" {
		t.Errorf("title %q", title)
	}
	// This checks pixels, too: the root's row is filled to its right end.
	if !eval[bool](b, `(() => { const c = document.getElementById('canvas'), g = c.getContext('2d');
		return g.getImageData(c.width - 10, c.height - 8, 1, 1).data[3] === 255; })()`) {
		t.Error("nothing is painted where the root should be")
	}
	b.Press("?")
	if facts := b.Text("facts"); !strings.Contains(facts, "prod-<7>") {
		t.Errorf("about: %s", facts)
	}
	b.Screenshot("about")
}

// TestKindsOfAMethod: a method that ran as several kinds of code is one frame, with the share of each kind. It is also
// one frame in the reverse view.
func TestKindsOfAMethod(t *testing.T) {
	tree := parse(t, "Shop.main_[0];Shop.sell_[1] 300\nShop.main_[0];Shop.sell_[j] 700\nShop.main_[j];Shop.sell_[i] 50\n")
	b := open(t, tree.Shaped(output.Shape{}.Drawn()), Options{}, "#q=Shop.sell")
	b.Expect("frames 2; matches 1 frames, 1050 samples, 100.00%")
	b.Press("n")
	if got := b.Text("figures"); !strings.Contains(got, "Java: 66.67% compiled, 28.57% C1, 4.76% inlined") {
		t.Errorf("told %q", got)
	}
}

// TestAllFrames: a key shows and hides the frames that the picture leaves out.
func TestAllFrames(t *testing.T) {
	tree := parse(t, "[pool-1 tid=1];__clone3;call_stub;java.lang.Thread.run_[0];Pool.take_[j];"+
		"jdk.internal.misc.Unsafe.park_[0];__futex_abstimed_wait_common;[parked] 60\n"+
		"[main tid=2];__clone3;call_stub;Shop.main_[0];Shop.main_[0];read;[running] 40\n")
	drawn, whole := tree.Drawn(output.Shape{}.Drawn())
	b := open(t, drawn, Options{Whole: whole}, "#q=Unsafe.park")
	b.Expect("samples 100; frames 11; matches 0 frames")
	b.Press("r", "i", kb.ArrowDown, kb.ArrowDown)
	if got := b.Text("frame"); got != "Pool.take" { // the waiting method, right below the state
		t.Errorf("below [parked]: %q", got)
	}
	b.Press("a")
	b.Expect("samples 100; frames 15; matches 1 frames, 60 samples, 60.00%", "view reverse icicle all")
	b.Press("f")
	b.Expect("frames 14", "view reverse icicle folded all")
	address := eval[string](b, "location.hash")
	b.Press("a")
	b.Expect("frames 10; matches 0 frames", "view reverse icicle folded light")
	b.Do(chromedp.Navigate(b.URL + address))
	b.Expect("frames 14; matches 1 frames", "view reverse icicle folded all")
	plain := open(t, shop(t), Options{}, "#frames")
	plain.Press("a")
	plain.Expect("frames 11", "view flame light")
}

// TestGuessedLeaf: the share of a frame that is a guess is named and hatched.
func TestGuessedLeaf(t *testing.T) {
	tree := parse(t, "Shop.main_[0];Shop.sell_[j];Shop.price_[i] 600\nShop.main_[0];Shop.sell_[j] 400\n")
	tree.Guessed = map[int32]int64{3: 300}
	b := open(t, tree, Options{}, "#light&q=price")
	b.Press("n")
	if got := b.Text("figures"); !strings.Contains(got, "Java, inlined; 50.00% of it guessed; 600 samples") {
		t.Errorf("told %q", got)
	}
	if got := b.Text("legend"); !strings.Contains(got, "guess: another method inlined there may have run") {
		t.Errorf("legend %q", got)
	}
	b.Press(kb.Escape)
	// shades returns how many colours a part of the frame's row has.
	shades := func(from, to float64) int {
		return eval[int](b, fmt.Sprintf(`(() => { const c = document.getElementById('canvas'), copy = document.createElement('canvas');
			copy.width = c.width; copy.height = c.height;
			const g = copy.getContext('2d', {willReadFrequently: true}), seen = new Set();
			g.drawImage(c, 0, 0);
			const x = Math.round(c.width * %g), w = Math.round(c.width * %g) - x;
			const d = g.getImageData(x, c.height - 4 * 18 + 3, w, 10).data;
			for (let i = 0; i < d.length; i += 4) seen.add(d[i] + ',' + d[i + 1] + ',' + d[i + 2]);
			return seen.size; })()`, from, to))
	}
	if sure, guessed := shades(0.2, 0.29), shades(0.31, 0.58); sure != 1 || guessed < 2 {
		t.Errorf("%d colours where it is sure, %d where it is a guess", sure, guessed)
	}
	b.Press("f", "r", "i", kb.ArrowDown) // also in the other views
	if got := b.Text("figures"); !strings.Contains(got, "50.00% of it guessed") {
		t.Errorf("reversed: %q", got)
	}
}

// TestCallTree: the tree beside the graph has the same root and selection, and can be used by keys alone.
func TestCallTree(t *testing.T) {
	b := open(t, shop(t), Options{}, "")
	b.Press("t")
	b.Expect("drawn 12 boxes, 6 rows; calls 9 rows by total") // the path to Price.add is open
	row := func() string {
		t.Helper()
		return eval[string](b, `[...document.querySelector('.call[aria-selected=true]').children].map(c => c.textContent).join(' ')`)
	}
	at := func(keys string, want string) {
		t.Helper()
		b.Press(keys)
		if got := row(); got != want {
			t.Errorf("%q: at %q, not %q", keys, got, want)
		}
	}
	at(kb.Home, "100.00% 0.00% \u25beall")
	at(kb.ArrowDown, "80.00% 0.00% \u25be[main tid=1]")
	at(kb.ArrowLeft, "80.00% 0.00% \u25b8[main tid=1]")
	b.Expect("calls 3 rows by total")
	at(kb.ArrowDown, "20.00% 0.00% \u25b8[gc tid=2]")
	at("*", "20.00% 0.00% \u25be[gc tid=2]")
	b.Expect("calls 5 rows by total")
	at(kb.End, "20.00% 20.00% memcpy")
	if got := b.Text("frame"); got != "memcpy" {
		t.Errorf("the graph has %q", got)
	}
	at(kb.ArrowLeft, "20.00% 0.00% \u25beGCThread::run")
	b.Press(kb.Enter)
	b.Expect("zoom GCThread::run 200 samples", "calls 2 rows by total")
	b.Press("s", "s")
	b.Expect("calls 2 rows by name")
	b.Press(kb.Backspace)
	b.Expect("zoom all", "calls 5 rows by name")
	b.Search("Price") // matches in the graph are opened in the tree
	b.Press(kb.Enter)
	if got := row(); got != "40.00% 40.00% Price.add" {
		t.Errorf("found %q", got)
	}
	b.Screenshot("calls")
	if got := eval[int](b, `document.querySelectorAll('.call.hit').length`); got != 1 {
		t.Errorf("%d rows are found", got)
	}
	b.Press(kb.Escape, "r")
	b.Expect("view reverse", "calls ")
	b.Press("t")
	if eval[bool](b, `!document.getElementById('calls').hidden || document.activeElement.id !== 'scroll'`) {
		t.Error("the tree stays, or the graph has not got the focus")
	}
}

func TestSearch(t *testing.T) {
	b := open(t, shop(t), Options{}, "")
	b.Search("^basket|SHOP") // case matters
	b.Expect("matches 0 frames, 0 samples, 0.00%")
	b.Press(kb.Escape)
	b.Search(`^basket\.|memc`)
	b.Expect("matches 4 frames, 1000 samples, 100.00%")
	b.Press(kb.Escape)
	b.Expect("matches none")
	b.Search("price")
	b.Expect("matches 1 frames, 400 samples, 40.00%")
	if got := b.Text("matched"); got != "matched 40.00%" {
		t.Errorf("told %q", got)
	}
	b.Screenshot("search")
	b.Press("(")
	b.Expect("matches none")
	if got := b.Text("matched"); got != "not an expression" {
		t.Errorf("told %q", got)
	}
}

func TestAddressOpensSearch(t *testing.T) {
	b := open(t, shop(t), Options{}, "#q=Shop%5C.(sell%7Clog)")
	b.Expect("matches 2 frames, 800 samples, 80.00%")
	b.Do(chromedp.Navigate(b.URL + "#reverse&icicle&dark&q=memcpy"))
	b.Expect("matches 3 frames, 600 samples, 60.00%", "view reverse icicle dark")
	b.Do(chromedp.Navigate(b.URL + "#q=%E0%A4%A&zoom=99999&zoom=-1")) // an invalid address is no error
	b.Expect("zoom all", "view flame light")
}

func TestZoomAndBack(t *testing.T) {
	b := open(t, shop(t), Options{}, "")
	// The bottom row is the root. The row above it has the threads: gc, then main from 20 % on.
	click := func(share float64, row int) {
		t.Helper()
		box := eval[[]float64](b, "(() => { const r = document.getElementById('canvas').getBoundingClientRect(); "+
			"return [r.left, r.bottom, r.width]; })()")
		b.Do(chromedp.MouseClickXY(box[0]+share*box[2], box[1]-float64(row*18)-9))
	}
	click(0.5, 1)
	b.Expect("zoom [main tid=1] 800 samples, 80.00%")
	click(0.1, 3) // Shop.log is left of Shop.sell, which has the full width now
	b.Expect("zoom Shop.log 300 samples, 30.00%")
	b.Screenshot("zoom")
	b.Search("memcpy")
	b.Expect("matches 3 frames, 600 samples, 60.00%")
	if got := b.Text("matched"); got != "matched 60.00%, 100.00% of the zoom" {
		t.Errorf("told %q", got)
	}
	address := eval[string](b, "location.hash")
	b.Press(kb.Escape, kb.Backspace)
	b.Expect("zoom [main tid=1] 800")
	b.Press(kb.Backspace)
	b.Expect("zoom all 1000")
	b.Do(chromedp.Navigate(b.URL + address)) // the address has the same effect as the click
	b.Expect("zoom Shop.log 300 samples", "matches 3 frames")
	b.Press(kb.Escape, "0")
	b.Expect("zoom all 1000", "matches none")
}

func TestReverse(t *testing.T) {
	b := open(t, shop(t), Options{}, "")
	b.Press("r", "i")
	b.Expect("view reverse icicle", "drawn 16 boxes, 6 rows")
	b.Screenshot("reverse")
	b.Press(kb.ArrowDown)
	if frame, figures := b.Text("frame"), b.Text("figures"); frame != "memcpy" ||
		!strings.Contains(figures, "600 samples, 60.00%; root 0") {
		t.Errorf("%q: %q", frame, figures)
	}
	b.Press(kb.ArrowDown, kb.Enter) // its widest caller
	b.Expect("zoom Shop.log 300 samples")
	b.Press(kb.Escape, "r")
	b.Expect("zoom all", "view icicle")
}

func TestKeysAndDark(t *testing.T) {
	b := open(t, shop(t), Options{}, "")
	b.Press(kb.ArrowUp, kb.ArrowUp, kb.ArrowUp)
	if got := b.Text("frame"); got != "Shop.sell" {
		t.Errorf("at %q", got)
	}
	b.Press(kb.ArrowLeft)
	if got := b.Text("figures"); b.Text("frame") != "Shop.log" ||
		!strings.Contains(got, "Java, C1; 300 samples, 30.00%, 37.50% of its caller; self 0") {
		t.Errorf("at %q: %q", b.Text("frame"), got)
	}
	b.Press("c")
	for range 2400 { // a minute bounds a hang
		if b.Text("figures") == "copied" {
			break
		}
		time.Sleep(25 * time.Millisecond)
	}
	if got := b.Text("figures"); got != "copied" {
		t.Errorf("copy: %q", got)
	}
	light := eval[string](b, "getComputedStyle(document.body).backgroundColor")
	b.Press("d")
	b.Expect("dark")
	if eval[string](b, "getComputedStyle(document.body).backgroundColor") == light {
		t.Error("dark is as light as light")
	}
	b.Screenshot("dark")
}

// TestHostileNames: class names come from the target, and stay text.
func TestHostileNames(t *testing.T) {
	hostile := []string{
		`</script><script>window.pwned=1</script>`, `<img src=x onerror=window.pwned=1>`, `"><svg onload=window.pwned=1>`,
		`javascript:window.pwned=1`, "${window.pwned=1}", `\u003c/script>`, "<!--<script>", "\u2028window.pwned=1", "@DATA@ @SCRIPT@", "]]>", "日本.Größe😀",
	}
	var file strings.Builder
	for _, name := range hostile {
		fmt.Fprintf(&file, "%s_[j];%s.run 5\n", name, name)
	}
	title := hostile[0] + hostile[1] + "&amp;"
	b := open(t, parse(t, file.String()), Options{Title: title, About: [][2]string{{hostile[0], hostile[1]}}}, "#icicle")
	b.Expect(fmt.Sprintf("samples %d; frames %d;", 5*len(hostile), 2*len(hostile)))
	if got := eval[string](b, "document.title"); got != title {
		t.Errorf("title %q", got)
	}
	b.Press(kb.ArrowDown) // all callers are equally wide, so this selects the first one
	seen := map[string]bool{}
	for range hostile {
		seen[b.Text("frame")] = true
		b.Press(kb.ArrowRight)
	}
	for _, name := range hostile {
		if !seen[name] {
			t.Errorf("%q is not shown as it is", name)
		}
	}
	b.Press("?")
	if !strings.Contains(b.Text("facts"), hostile[0]) {
		t.Errorf("about: %q", b.Text("facts"))
	}
}

func TestDeepStack(t *testing.T) {
	b := open(t, parse(t, strings.Repeat("Deep.recurse_[j];", 3000)+"leaf 7\n"), Options{}, "")
	b.Expect("frames 3001", "3002 rows")
	b.Screenshot("deep")
	b.Press("i")
	b.Search("leaf")
	b.Expect("matches 1 frames, 7 samples, 100.00%")
}

// TestManyFrames logs how long the page takes for each step. It checks none of these times.
func TestManyFrames(t *testing.T) {
	for _, frames := range []int{100_000, 1_000_000} {
		t.Run(fmt.Sprint(frames), func(t *testing.T) {
			b := open(t, syntheticTree(frames), Options{}, "")
			b.Expect(fmt.Sprintf("frames %d;", frames))
			took := func(what string) {
				t.Helper()
				t.Logf("%s: %s ms", what, eval[string](b, "document.getElementById('summary').dataset.ms"))
			}
			took("layout")
			b.Search("handleRequest99")
			b.Press(kb.Enter)
			b.Expect(" frames, ")
			took("search")
			b.Press(kb.ArrowUp, kb.Enter)
			if summary := b.Text("summary"); strings.Contains(summary, "zoom all") {
				t.Errorf("did not zoom: %s", summary)
			}
			took("zoom")
			b.Screenshot(fmt.Sprint(frames))
			b.Press("r")
			b.Expect("view reverse flame")
			took("reverse")
			b.Press("r", "0", "t")
			b.Expect("zoom all", "calls ")
			took("call tree")
			b.Press(kb.End, "*", kb.PageDown, "s")
			b.Expect("rows by self")
			took("call tree by self")
			if n := eval[int](b, "document.querySelectorAll('.call').length"); n > 60 {
				t.Errorf("%d rows are elements of the page", n)
			}
			b.Screenshot(fmt.Sprint(frames, "-calls"))
		})
	}
}

// TestDeepRecursion: the page opens at the frames with the most time, even under 300 calls of one method. A key merges
// these calls into one frame.
func TestDeepRecursion(t *testing.T) {
	b := open(t, parse(t, "Main.main_[0];"+strings.Repeat("Deep.recurse_[j];", 300)+
		"Work.leaf_[i] 88\nMain.main_[0];Other.done_[j] 12\n"), Options{}, "")
	b.Expect("303 rows")
	if top := eval[float64](b, "document.getElementById('scroll').scrollTop"); top >= 18 {
		t.Errorf("the leaf, in the row on top, cannot be seen: the page shows what is %v below", top)
	}
	b.Press("f")
	b.Expect("samples 100; frames 4; ", "view flame folded", "5 boxes, 4 rows")
	b.Press(kb.ArrowUp, kb.ArrowUp)
	if got := b.Text("figures"); b.Text("frame") != "Deep.recurse" ||
		!strings.Contains(got, "88 samples, 88.00%, 88.00% of its caller") {
		t.Errorf("%q: %q", b.Text("frame"), got)
	}
	b.Screenshot("folded")
	b.Press("r")
	b.Expect("view reverse flame folded", "frames 4")
	b.Press("f")
	b.Expect("view reverse flame light", "frames 303")
}

// TestIndirectRecursion: methods that call each other are also merged. No samples are lost.
func TestIndirectRecursion(t *testing.T) {
	b := open(t, parse(t, "a;b;a;b;a;c 3\na;b;a;d 2\na 1\n"), Options{}, "#fold")
	b.Expect("samples 6; frames 4; ", "zoom all 6 samples, 100.00%")
	b.Search("d")
	b.Expect("matches 1 frames, 2 samples, 33.33%")
}

func TestWalkFromMatchToMatch(t *testing.T) {
	b := open(t, shop(t), Options{Title: "Shop", Line: "cpu mode · 1000 samples · pid 7 on <host>"}, "")
	if got := b.Text("line"); got != "cpu mode · 1000 samples · pid 7 on <host>" {
		t.Errorf("below the title: %q", got)
	}
	b.Search("memcpy")
	b.Press(kb.Enter)
	for i, want := range []string{"match 1 of 3; JVM and native; 200 samples, 20.00%",
		"match 2 of 3; JVM and native; 300 samples", "match 3 of 3", "match 1 of 3"} {
		if got := b.Text("figures"); b.Text("frame") != "memcpy" || !strings.Contains(got, want) {
			t.Errorf("step %d: %q, want %q", i, got, want)
		}
		b.Press("n")
	}
	b.Press("N")
	if got := b.Text("figures"); !strings.Contains(got, "match 1 of 3") {
		t.Errorf("back: %q", got)
	}
	b.Press(kb.Escape)
	b.Search("nothing")
	b.Expect("matches 0 frames")
	if got := b.Text("matched"); got != "no match" {
		t.Errorf("told %q", got)
	}
}

// TestSharesOfZoomAndCaller: a frame has three shares: of all samples, of the zoom, and of its caller.
func TestSharesOfZoomAndCaller(t *testing.T) {
	b := open(t, shop(t), Options{}, "")
	b.Search("^\\[main")
	b.Press(kb.Enter, kb.Enter) // zoom to the thread
	b.Expect("zoom [main tid=1] 800 samples")
	b.Press(kb.ArrowUp, kb.ArrowUp)
	if got := b.Text("figures"); !strings.Contains(got, "500 samples, 50.00%, 62.50% of the zoom, 62.50% of its "+
		"caller; self 0") {
		t.Errorf("%q: %q", b.Text("frame"), got)
	}
}
