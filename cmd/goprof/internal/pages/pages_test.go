package pages

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"goprof/output/recording"
)

// TestServedLink: a link that the user names is followed. A link that takes the place of a recording is not.
func TestServedLink(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "a.jfr"), filepath.Join(dir, "link.jfr")
	if err := cmp.Or(os.WriteFile(file, nil, 0o600), os.Symlink("a.jfr", link)); err != nil {
		t.Fatal(err)
	}
	shelf, err := Open(link)
	if err != nil {
		t.Fatal(err)
	}
	if path, ok := shelf.find("a.jfr"); !ok || path != file {
		t.Errorf("the link leads to %q, %v", path, ok)
	}
	_, err = recording.Open(link, recording.Options{Regular: true})
	if err == nil || err.Error() != "it is a symbolic link" {
		t.Errorf("a link is opened: %v", err)
	}
}

// slowReader is a reader of a page. Other pages can be made while it reads.
type slowReader struct {
	*httptest.ResponseRecorder
	t      *testing.T
	making *sync.Mutex
}

func (r *slowReader) Write(b []byte) (int, error) {
	if r.making.TryLock() {
		r.making.Unlock()
	} else {
		r.t.Error("no other page can be made")
	}
	return r.ResponseRecorder.Write(b)
}

// TestServeSlowReader: a page that is being read has no file any more, and holds up no other one.
func TestServeSlowReader(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.collapsed"), []byte("main;a 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	table := func(args ...string) (string, error) {
		return "", os.WriteFile(args[slices.Index(args, "--output")+1], []byte("a table"), 0o600)
	}
	pages := &handler{Shelf: &Shelf{dir: dir}, scratch: t.TempDir(), run: table}
	answer := &slowReader{httptest.NewRecorder(), t, &pages.making}
	asked := &url.URL{Path: "methods", RawQuery: "file=a.collapsed"}
	pages.ServeHTTP(answer, &http.Request{Method: http.MethodGet, URL: asked})
	if left, _ := os.ReadDir(pages.scratch); answer.Code != 200 || answer.Body.Len() == 0 || len(left) > 0 {
		t.Errorf("%d, %q, and there are %v", answer.Code, answer.Body, left)
	}
}
