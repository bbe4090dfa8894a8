package speedscope

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"goprof/testdata/browser"
	"goprof/testdata/sources"
)

// TestMain ends the browser.
func TestMain(m *testing.M) { browser.Main(m) }

// TestPage: speedscope's own page, in Chromium, loads our files, names the first thread, and draws without an error.
// The page is served from its npm package on this machine, and makes no other connection.
func TestPage(t *testing.T) {
	release := filepath.Join(sources.Viewers(t), "speedscope", "dist", "release")
	files := map[string][]byte{
		"cpu":  written(t, sources.CPU(), Options{}),
		"wall": written(t, sources.Wall(), Options{}),
		"evil": written(t, sources.EvilNames(), Options{}),
	}
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(release)))
	mux.HandleFunc("/ours/{name}", func(w http.ResponseWriter, r *http.Request) { w.Write(files[r.PathValue("name")]) })
	server := httptest.NewServer(mux)
	defer server.Close()
	for name, file := range files {
		t.Run(name, func(t *testing.T) {
			f := checked(t, file)
			p := browser.Visit(t, server.URL+"/#profileURL="+server.URL+"/ours/"+name, 1200, 700)
			want := f.Profiles[f.Active].Name
			var text string
			for range 400 {
				if text = browser.Eval[string](p, "document.body.innerText"); strings.Contains(text, want) {
					break
				}
				time.Sleep(25 * time.Millisecond)
			}
			if !strings.Contains(text, want) {
				t.Fatalf("the page does not show %q:\n%s", want, text)
			}
			if title := browser.Eval[string](p, "document.title"); !strings.Contains(title, f.Name) {
				t.Errorf("title %q, not %q", title, f.Name)
			}
			p.Do(chromedp.KeyEvent("2"), chromedp.Sleep(200*time.Millisecond), chromedp.KeyEvent("3"),
				chromedp.Sleep(200*time.Millisecond))
			text = browser.Eval[string](p, "document.body.innerText")
			if name == "cpu" && !strings.Contains(text, "shop.Price") {
				t.Errorf("the table of functions has none of ours:\n%s", text)
			}
			if browser.Eval[int](p, "document.querySelectorAll('canvas').length") == 0 {
				t.Error("nothing is drawn")
			}
			p.Quiet()
		})
	}
}
