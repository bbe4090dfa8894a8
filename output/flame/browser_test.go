package flame

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"goprof/output"
	"goprof/profile"
	"goprof/testdata/jvmtest"
)

// browser is a page in a headless Chromium.
type browser struct {
	t   *testing.T
	ctx context.Context
	url string
}

// open draws a page and opens it. GOPROF_REQUIRE_CHROMIUM makes a missing browser an error.
func open(t *testing.T, tree *output.Tree, o Options, fragment string) *browser {
	t.Helper()
	jvmtest.NotQuick(t, jvmtest.StartsBrowser)
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		const why = "needs a browser: apt-get install chromium"
		if os.Getenv("GOPROF_REQUIRE_CHROMIUM") != "" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, drawPage(t, tree, o), 0o600); err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1200, 700),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.UserDataDir(t.TempDir()))
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute) // a hung browser fails the test
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx, url: "file://" + filepath.ToSlash(file)}
	b.do(chromedp.Navigate(b.url+fragment), chromedp.WaitReady("#summary"))
	t.Cleanup(b.checkSealed)
	return b
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

func eval[T any](b *browser, script string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script))
	if err != nil {
		b.t.Fatalf("%s: %v", script, err)
	}
	return v
}

func (b *browser) text(id string) string {
	b.t.Helper()
	return eval[string](b, fmt.Sprintf("document.getElementById(%q).textContent", id))
}

// expect waits until the summary holds all of texts.
func (b *browser) expect(texts ...string) {
	b.t.Helper()
	summary := ""
	for range 200 {
		summary = b.text("summary")
		if missing(summary, texts) == "" {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	b.t.Fatalf("no %q in the summary: %s", missing(summary, texts), summary)
}

func missing(in string, texts []string) string {
	for _, text := range texts {
		if !strings.Contains(in, text) {
			return text
		}
	}
	return ""
}

func (b *browser) press(keys ...string) {
	b.t.Helper()
	for _, k := range keys {
		b.do(chromedp.KeyEvent(k))
	}
}

// search types into the search field. The key's own letter is taken out again: unlike a keyboard,
// the protocol sends it although the page has consumed the key.
func (b *browser) search(pattern string) {
	b.t.Helper()
	b.press("/")
	if got := eval[string](b, "document.activeElement.id"); got != "query" {
		b.t.Fatalf("typing goes to %q", got)
	}
	eval[string](b, "document.getElementById('query').value = ''")
	b.press(pattern)
}

// screenshot keeps a picture for people where GOPROF_SCREENSHOTS names a folder.
func (b *browser) screenshot(name string) {
	b.t.Helper()
	dir := os.Getenv("GOPROF_SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// checkSealed holds of every page at its end: nothing was loaded, and no name became an element
// or ran.
func (b *browser) checkSealed() {
	if n := eval[int](b, "performance.getEntriesByType('resource').length"); n != 0 {
		b.t.Errorf("the page loaded %d things", n)
	}
	if n := eval[int](b, "document.querySelectorAll('img, iframe, link, script:not(#data)').length"); n != 1 {
		b.t.Errorf("%d elements that load or run, want its own script alone", n)
	}
	if eval[bool](b, "'pwned' in window") {
		b.t.Error("a name ran as script")
	}
}

func shop(t *testing.T) *output.Tree {
	t.Helper()
	return parse(t, `[main tid=1];Shop.main_[0];Shop.sell_[1];Basket.total_[j];Price.add_[i] 400
[main tid=1];Shop.main_[0];Shop.sell_[1];Basket.total_[j];memcpy 100
[main tid=1];Shop.main_[0];Shop.log_[1];memcpy 300
[gc tid=2];GCThread::run;memcpy 200
`)
}

// What is weighed by CPU time is told in seconds.
func TestPageOfCPUTime(t *testing.T) {
	tree := parse(t, "Shop.main_[0];Shop.sell_[1] 1500000000\nShop.main_[0] 499000000\n[not sampled] 1000000\n")
	tree.Weight = profile.CPUTime
	b := open(t, tree, Options{Title: "Shop"}, "#q=sell")
	b.expect("cpu 2000000000 ns; frames 3; matches 1 frames, 1.50 s of CPU, 75.00%; zoom all 2.00 s of CPU, 100.00%")
	var svg strings.Builder
	if err := SVG(&svg, tree, Options{}); err != nil || !strings.Contains(svg.String(), "Shop.sell (1.5s of CPU, 75.0%)") {
		t.Errorf("%v\n%s", err, svg.String())
	}
}

// Time that passes is not CPU time.
func TestPageOfTime(t *testing.T) {
	tree := parse(t, "Shop.main_[0];[parked] 1500000000\n")
	tree.Weight = profile.WallTime
	b := open(t, tree, Options{Title: "Shop"}, "")
	b.expect("zoom all 1.50 s of threads' time, 100.00%")
}

func TestPageDraws(t *testing.T) {
	b := open(t, shop(t), Options{Title: "Shop", About: [][2]string{{"host", "prod-<7>"}}}, "")
	b.expect("samples 1000; frames 11; matches none; zoom all 1000 samples, 100.00%; view flame light; drawn 12 boxes, 6 rows")
	b.screenshot("flame")
	if title := eval[string](b, "document.title"); title != "Shop" {
		t.Errorf("title %q", title)
	}
	// Pixels, not only words: the root's row is filled to its right end.
	if !eval[bool](b, `(() => { const c = document.getElementById('canvas'), g = c.getContext('2d');
		return g.getImageData(c.width - 10, c.height - 8, 1, 1).data[3] === 255; })()`) {
		t.Error("nothing is painted where the root should be")
	}
	b.press("?")
	if facts := b.text("facts"); !strings.Contains(facts, "prod-<7>") {
		t.Errorf("about: %s", facts)
	}
	b.screenshot("about")
}

func TestSearch(t *testing.T) {
	b := open(t, shop(t), Options{}, "")
	b.search("^basket|SHOP") // capitals are meant
	b.expect("matches 0 frames, 0 samples, 0.00%")
	b.press(kb.Escape)
	b.search(`^basket\.|memc`)
	b.expect("matches 4 frames, 1000 samples, 100.00%")
	b.press(kb.Escape)
	b.expect("matches none")
	b.search("price")
	b.expect("matches 1 frames, 400 samples, 40.00%")
	if got := b.text("matched"); got != "matched 40.00%" {
		t.Errorf("told %q", got)
	}
	b.screenshot("search")
	b.press("(")
	b.expect("matches none")
	if got := b.text("matched"); got != "not an expression" {
		t.Errorf("told %q", got)
	}
}

func TestAddressOpensSearch(t *testing.T) {
	b := open(t, shop(t), Options{}, "#q=Shop%5C.(sell%7Clog)")
	b.expect("matches 2 frames, 800 samples, 80.00%")
	b.do(chromedp.Navigate(b.url + "#reverse&icicle&dark&q=memcpy"))
	b.expect("matches 3 frames, 600 samples, 60.00%", "view reverse icicle dark")
	b.do(chromedp.Navigate(b.url + "#q=%E0%A4%A&zoom=99999&zoom=-1")) // nonsense is no error
	b.expect("zoom all", "view flame light")
}

func TestZoomAndBack(t *testing.T) {
	b := open(t, shop(t), Options{}, "")
	// The bottom row is the root, the one above it the threads: gc, then main from 20 % on.
	click := func(share float64, row int) {
		t.Helper()
		box := eval[[]float64](b, "(() => { const r = document.getElementById('canvas').getBoundingClientRect(); return [r.left, r.bottom, r.width]; })()")
		b.do(chromedp.MouseClickXY(box[0]+share*box[2], box[1]-float64(row*18)-9))
	}
	click(0.5, 1)
	b.expect("zoom [main tid=1] 800 samples, 80.00%")
	click(0.1, 3) // Shop.log is left of Shop.sell, at full width now
	b.expect("zoom Shop.log 300 samples, 30.00%")
	b.screenshot("zoom")
	b.search("memcpy")
	b.expect("matches 3 frames, 600 samples, 60.00%")
	if got := b.text("matched"); got != "matched 60.00%, 100.00% of the zoom" {
		t.Errorf("told %q", got)
	}
	address := eval[string](b, "location.hash")
	b.press(kb.Escape, kb.Backspace)
	b.expect("zoom [main tid=1] 800")
	b.press(kb.Backspace)
	b.expect("zoom all 1000")
	b.do(chromedp.Navigate(b.url + address)) // the address is as good as the click
	b.expect("zoom Shop.log 300 samples", "matches 3 frames")
	b.press(kb.Escape, "0")
	b.expect("zoom all 1000", "matches none")
}

func TestReverse(t *testing.T) {
	b := open(t, shop(t), Options{}, "")
	b.press("r", "i")
	b.expect("view reverse icicle", "drawn 16 boxes, 6 rows")
	b.screenshot("reverse")
	b.press(kb.ArrowDown)
	if frame, figures := b.text("frame"), b.text("figures"); frame != "memcpy" || !strings.Contains(figures, "600 samples, 60.00%; root 0") {
		t.Errorf("%q: %q", frame, figures)
	}
	b.press(kb.ArrowDown, kb.Enter) // its widest caller
	b.expect("zoom Shop.log 300 samples")
	b.press(kb.Escape, "r")
	b.expect("zoom all", "view icicle")
}

func TestKeysAndDark(t *testing.T) {
	b := open(t, shop(t), Options{}, "")
	b.press(kb.ArrowUp, kb.ArrowUp, kb.ArrowUp)
	if got := b.text("frame"); got != "Shop.sell" {
		t.Errorf("at %q", got)
	}
	b.press(kb.ArrowLeft)
	if got := b.text("figures"); b.text("frame") != "Shop.log" || !strings.Contains(got, "Java, C1; 300 samples, 30.00%, 37.50% of its caller; self 0") {
		t.Errorf("at %q: %q", b.text("frame"), got)
	}
	b.press("c")
	for range 40 {
		if b.text("figures") == "copied" {
			break
		}
		time.Sleep(25 * time.Millisecond)
	}
	if got := b.text("figures"); got != "copied" {
		t.Errorf("copy: %q", got)
	}
	light := eval[string](b, "getComputedStyle(document.body).backgroundColor")
	b.press("d")
	b.expect("dark")
	if eval[string](b, "getComputedStyle(document.body).backgroundColor") == light {
		t.Error("dark is as light as light")
	}
	b.screenshot("dark")
}

// TestHostileNames: class names come from the target, and must stay text.
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
	b.expect(fmt.Sprintf("samples %d; frames %d;", 5*len(hostile), 2*len(hostile)))
	if got := eval[string](b, "document.title"); got != title {
		t.Errorf("title %q", got)
	}
	b.press(kb.ArrowDown) // to the widest: all are alike, so the first
	seen := map[string]bool{}
	for range hostile {
		seen[b.text("frame")] = true
		b.press(kb.ArrowRight)
	}
	for _, name := range hostile {
		if !seen[name] {
			t.Errorf("%q is not shown as it is", name)
		}
	}
	b.press("?")
	if !strings.Contains(b.text("facts"), hostile[0]) {
		t.Errorf("about: %q", b.text("facts"))
	}
}

func TestDeepStack(t *testing.T) {
	b := open(t, parse(t, strings.Repeat("Deep.recurse_[j];", 3000)+"leaf 7\n"), Options{}, "")
	b.expect("frames 3001", "3002 rows")
	b.screenshot("deep")
	b.press("i")
	b.search("leaf")
	b.expect("matches 1 frames, 7 samples, 100.00%")
}

// TestManyFrames logs how long the page took for each step; nothing is asserted on it.
func TestManyFrames(t *testing.T) {
	for _, frames := range []int{100_000, 1_000_000} {
		t.Run(fmt.Sprint(frames), func(t *testing.T) {
			b := open(t, syntheticTree(frames), Options{}, "")
			b.expect(fmt.Sprintf("frames %d;", frames))
			took := func(what string) {
				t.Helper()
				t.Logf("%s: %s ms", what, eval[string](b, "document.getElementById('summary').dataset.ms"))
			}
			took("layout")
			b.search("handleRequest99")
			b.press(kb.Enter)
			b.expect(" frames, ")
			took("search")
			b.press(kb.ArrowUp, kb.Enter)
			if summary := b.text("summary"); strings.Contains(summary, "zoom all") {
				t.Errorf("did not zoom: %s", summary)
			}
			took("zoom")
			b.screenshot(fmt.Sprint(frames))
			b.press("r")
			b.expect("view reverse flame")
			took("reverse")
		})
	}
}

// TestDeepRecursion: the page opens where the time is, also behind 300 calls of one method, and shows them as one on a
// key.
func TestDeepRecursion(t *testing.T) {
	b := open(t, parse(t, "Main.main_[0];"+strings.Repeat("Deep.recurse_[j];", 300)+"Work.leaf_[i] 88\nMain.main_[0];Other.done_[j] 12\n"), Options{}, "")
	b.expect("303 rows")
	if top := eval[float64](b, "document.getElementById('scroll').scrollTop"); top >= 18 {
		t.Errorf("the leaf, in the row on top, cannot be seen: the page shows what is %v below", top)
	}
	b.press("f")
	b.expect("samples 100; frames 4; ", "view flame folded", "5 boxes, 4 rows")
	b.press(kb.ArrowUp, kb.ArrowUp)
	if got := b.text("figures"); b.text("frame") != "Deep.recurse" || !strings.Contains(got, "88 samples, 88.00%, 88.00% of its caller") {
		t.Errorf("%q: %q", b.text("frame"), got)
	}
	b.screenshot("folded")
	b.press("r")
	b.expect("view reverse flame folded", "frames 4")
	b.press("f")
	b.expect("view reverse flame light", "frames 303")
}

// TestIndirectRecursion: methods that call each other are folded, too, and no samples are lost.
func TestIndirectRecursion(t *testing.T) {
	b := open(t, parse(t, "a;b;a;b;a;c 3\na;b;a;d 2\na 1\n"), Options{}, "#fold")
	b.expect("samples 6; frames 4; ", "zoom all 6 samples, 100.00%")
	b.search("d")
	b.expect("matches 1 frames, 2 samples, 33.33%")
}

func TestWalkFromMatchToMatch(t *testing.T) {
	b := open(t, shop(t), Options{Title: "Shop", Line: "cpu mode · 1000 samples · pid 7 on <host>"}, "")
	if got := b.text("line"); got != "cpu mode · 1000 samples · pid 7 on <host>" {
		t.Errorf("below the title: %q", got)
	}
	b.search("memcpy")
	b.press(kb.Enter)
	for i, want := range []string{"match 1 of 3; JVM and native; 200 samples, 20.00%", "match 2 of 3; JVM and native; 300 samples", "match 3 of 3", "match 1 of 3"} {
		if got := b.text("figures"); b.text("frame") != "memcpy" || !strings.Contains(got, want) {
			t.Errorf("step %d: %q, want %q", i, got, want)
		}
		b.press("n")
	}
	b.press("N")
	if got := b.text("figures"); !strings.Contains(got, "match 1 of 3") {
		t.Errorf("back: %q", got)
	}
	b.press(kb.Escape)
	b.search("nothing")
	b.expect("matches 0 frames")
	if got := b.text("matched"); got != "no match" {
		t.Errorf("told %q", got)
	}
}

// TestSharesOfZoomAndCaller: a frame's share of all, of the zoom, and of its caller are different questions.
func TestSharesOfZoomAndCaller(t *testing.T) {
	b := open(t, shop(t), Options{}, "")
	b.search("^\\[main")
	b.press(kb.Enter, kb.Enter) // zoom to the thread
	b.expect("zoom [main tid=1] 800 samples")
	b.press(kb.ArrowUp, kb.ArrowUp)
	if got := b.text("figures"); !strings.Contains(got, "500 samples, 50.00%, 62.50% of the zoom, 62.50% of its caller; self 0") {
		t.Errorf("%q: %q", b.text("frame"), got)
	}
}
