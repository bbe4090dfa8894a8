// Package browser opens pages of ours in a headless Chromium, for tests. A page must load nothing, run nothing but its
// own script, and end without an error of that.
package browser

import (
	"context"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"goprof/testdata/jvmtest"
)

// Page is a page in a browser.
type Page struct {
	T   *testing.T
	Ctx context.Context
	URL string

	mu     sync.Mutex
	errors []chromedp.ConsoleMessage
}

// Open opens a page in a window of so many pixels. Its script must fill the element "summary".
// GOPROF_REQUIRE_CHROMIUM makes a missing browser an error.
func Open(t *testing.T, html []byte, fragment string, width, height int) *Page {
	t.Helper()
	jvmtest.NotQuick(t, jvmtest.StartsBrowser)
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, html, 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, "file://"+filepath.ToSlash(file))
	p.Do(chromedp.EmulateViewport(int64(width), int64(height)), chromedp.Navigate(p.URL+fragment),
		chromedp.WaitReady("#summary"))
	t.Cleanup(p.checkSealed)
	return p
}

// Visit opens a page of somebody else's, which a test serves.
func Visit(t *testing.T, url string, width, height int) *Page {
	t.Helper()
	p := start(t, url)
	p.Do(chromedp.EmulateViewport(int64(width), int64(height)), chromedp.Navigate(url), chromedp.WaitReady("body"))
	return p
}

// start opens a tab of its own, which shares no storage with others, in the browser of this run.
func start(t *testing.T, url string) *Page {
	t.Helper()
	ctx, cancel := context.WithTimeout(running(t), 3*time.Minute) // a hung page fails the test
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p := &Page{T: t, Ctx: ctx, URL: url}
	go p.listen(chromedp.Console(ctx))
	return p
}

// Quiet fails the test if somebody else's page has met an error. What it logs or warns of is its own affair.
func (p *Page) Quiet() {
	p.T.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, message := range p.errors {
		if message.IsException() || message.Type == "error" {
			p.T.Error(message)
		}
	}
}

func find(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const why = "needs a browser: apt-get install chromium"
	if os.Getenv("GOPROF_REQUIRE_CHROMIUM") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
	return ""
}

// listen keeps what the page's script fails with, or complains of, until the page is closed.
func (p *Page) listen(console iter.Seq2[chromedp.ConsoleMessage, error]) {
	for message, err := range console {
		if err != nil {
			return
		}
		p.mu.Lock()
		p.errors = append(p.errors, message)
		p.mu.Unlock()
	}
}

// Do runs steps one after the other.
func (p *Page) Do(steps ...chromedp.Action[chromedp.Void]) {
	p.T.Helper()
	if err := chromedp.Do(p.Ctx, steps...); err != nil {
		p.T.Fatal(err)
	}
}

// Eval is the value of an expression.
func Eval[T any](p *Page, script string) T {
	p.T.Helper()
	v, err := chromedp.Run(p.Ctx, chromedp.Evaluate[T](script))
	if err != nil {
		p.T.Fatalf("%s: %v", script, err)
	}
	return v
}

// Text is the text of an element.
func (p *Page) Text(id string) string {
	p.T.Helper()
	return Eval[string](p, fmt.Sprintf("document.getElementById(%q).textContent", id))
}

// Expect waits until the summary holds all of texts.
func (p *Page) Expect(texts ...string) {
	p.T.Helper()
	summary := ""
	for range 2400 { // a minute bounds a hang
		summary = p.Text("summary")
		if missing(summary, texts) == "" {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	p.T.Fatalf("no %q in the summary: %s", missing(summary, texts), summary)
}

func missing(in string, texts []string) string {
	for _, text := range texts {
		if !strings.Contains(in, text) {
			return text
		}
	}
	return ""
}

// Press presses keys.
func (p *Page) Press(keys ...string) {
	p.T.Helper()
	for _, k := range keys {
		p.Do(chromedp.KeyEvent(k))
	}
}

// Search types into the search field. The key's own letter is taken out again: unlike a keyboard,
// the protocol sends it although the page has consumed the key.
func (p *Page) Search(pattern string) {
	p.T.Helper()
	p.Press("/")
	if got := Eval[string](p, "document.activeElement.id"); got != "query" {
		p.T.Fatalf("typing goes to %q", got)
	}
	Eval[string](p, "document.getElementById('query').value = ''")
	p.Press(pattern)
}

// Screenshot keeps a picture for people where GOPROF_SCREENSHOTS names a folder.
func (p *Page) Screenshot(name string) {
	p.T.Helper()
	dir := os.Getenv("GOPROF_SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(p.Ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.T.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		p.T.Fatal(err)
	}
}

// checkSealed holds of every page at its end: nothing was loaded, no name became an element or ran, and no error came.
func (p *Page) checkSealed() {
	if n := Eval[int](p, "performance.getEntriesByType('resource').length"); n != 0 {
		p.T.Errorf("the page loaded %d things", n)
	}
	if n := Eval[int](p, "document.querySelectorAll('img, iframe, link, script:not(#data)').length"); n != 1 {
		p.T.Errorf("%d elements that load or run, want its own script alone", n)
	}
	if Eval[bool](p, "'pwned' in window") {
		p.T.Error("a name ran as script")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.errors {
		p.T.Errorf("the page's script: %s", e)
	}
}
