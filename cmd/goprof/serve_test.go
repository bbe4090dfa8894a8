package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestServe asks a real goprof serve for all that it has, and for what it must not give away.
func TestServe(t *testing.T) {
	if testing.Short() {
		t.Skip("not quick: it draws pages")
	}
	dir := t.TempDir()
	served := filepath.Join(dir, "served")
	for name, text := range map[string]string{"served/a b.collapsed": "main;a 3\nmain;b 1\n", "secret.collapsed": "x 1\n",
		"served/notes.md": "x 1\n", "served/below/c.collapsed": "x 1\n"} {
		path := filepath.Join(dir, name)
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../secret.collapsed", filepath.Join(served, "link.collapsed")); err != nil {
		t.Fatal(err)
	}
	at := startServe(t, served)
	for _, c := range []struct {
		path  string
		code  int
		holds string
	}{
		{"", 200, `<a href="flame?file=a+b.collapsed">flame</a>`},
		{"flame?file=a+b.collapsed", 200, "Content-Security-Policy"},
		{"methods?file=a+b.collapsed", 200, "75.0%"},
		{"threads?file=a+b.collapsed", 200, "[all threads]"},
		{"speedscope?file=a+b.collapsed", 200, "speedscope.app/file-format-schema.json"},
		{"pprof?file=a+b.collapsed", 200, "\x1f\x8b"},
		{"heat?file=a+b.collapsed", 422, "try: goprof record --pid PID -o FILE.jfr keeps the times"},
		{"flame?file=link.collapsed", 404, ""},
		{"flame?file=notes.md", 404, ""},
		{"flame?file=..%2Fsecret.collapsed", 404, ""},
		{"flame?file=below%2Fc.collapsed", 404, ""},
		{"flame?file=" + served + "/a+b.collapsed", 404, ""},
		{"flame", 404, ""},
		{"dump?file=a+b.collapsed", 404, ""},
		{"%2e%2e/secret.collapsed", 404, ""},
	} {
		code, body := get(t, at+c.path)
		if code != c.code || !strings.Contains(body, c.holds) {
			t.Errorf("%q: %d, want %d with %q, got\n%.300s", c.path, code, c.code, c.holds, body)
		}
	}
	if _, index := get(t, at); strings.Contains(index, "link") || strings.Contains(index, "notes") ||
		strings.Contains(index, "heat?") || strings.Contains(index, "<script") {
		t.Errorf("the list is\n%s", index)
	}
	withoutSecret := at[:strings.LastIndexByte(strings.TrimSuffix(at, "/"), '/')+1]
	if code, _ := get(t, withoutSecret); code != 404 {
		t.Errorf("without the secret: %d", code)
	}
	if answer, err := http.Post(at, "text/plain", strings.NewReader("x")); err != nil || answer.StatusCode != 405 {
		t.Errorf("POST: %v, %v", answer, err)
	}
}

// startServe starts goprof serve, and returns its address.
func startServe(t *testing.T, dir string) string {
	t.Helper()
	cmd := exec.Command("goprof", "serve", dir)
	told, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("serve ended with %v", err)
		}
	})
	line, err := bufio.NewReader(told).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(line)[1]
}

func get(t *testing.T, url string) (code int, body string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}
