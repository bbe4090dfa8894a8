package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestServe asks a real goprof serve for all that it has, and for what it must not give away.
func TestServe(t *testing.T) {
	if testing.Short() {
		t.Skip("not quick: it draws pages")
	}
	dir := t.TempDir()
	served := filepath.Join(dir, "served")
	for name, text := range map[string]string{"served/a b.collapsed": "main;a 3\nmain;b 1\n", "secret.collapsed": "x 1\n",
		"served/notes.md": "x 1\n", "served/below/c.collapsed": "x 1\n", "served/a b.summary.json": "no summary"} {
		path := filepath.Join(dir, name)
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../secret.collapsed", filepath.Join(served, "link.collapsed")); err != nil {
		t.Fatal(err)
	}
	writeParts(filepath.Join(served, "parts.jfr"), func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	})
	at, _ := startServe(t, served)
	for _, c := range []struct {
		path  string
		code  int
		holds string
	}{
		{"", 200, `<a href="flame?file=a+b.collapsed">flame</a>`},
		{"flame?file=a+b.collapsed", 200, "Content-Security-Policy"},
		{"", 200, "<tr><td colspan=5>flame<pre>goprof: "},
		{"", 200, "a b.summary.json not used: "},
		{"methods?file=a+b.collapsed", 200, "75.0%"},
		{"methods?file=a+b.collapsed", 200, "a b.summary.json not used: "},
		{"threads?file=a+b.collapsed", 200, "[all threads]"},
		{"speedscope?file=a+b.collapsed", 200, "speedscope.app/file-format-schema.json"},
		{"pprof?file=a+b.collapsed", 200, "\x1f\x8b"},
		{"heat?file=a+b.collapsed", 422, "try: goprof record --pid PID -o FILE.jfr keeps the times"},
		{"", 200, `<a href="methods?file=parts.jfr&amp;part=lock">methods</a>`},
		{"methods?file=parts.jfr", 200, "10 samples"},
		{"methods?file=parts.jfr&part=alloc", 200, "1.953 KiB"},
		{"heat?file=parts.jfr&part=lock", 200, "Content-Security-Policy"},
		{"methods?file=parts.jfr&part=--help", 404, ""},
		{"pprof?file=parts.jfr&part=lock", 404, ""},
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
		strings.Contains(index, "heat?file=a") || strings.Contains(index, "<script") {
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

// TestServeEnds: no signal that ends goprof serve leaves a page, not even while one is made.
func TestServeEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("not quick: it draws a large page")
	}
	name := filepath.Join(t.TempDir(), "large.collapsed")
	var text strings.Builder
	for n := range 10_000 {
		fmt.Fprintf(&text, "main;a%d%s 1\n", n, strings.Repeat(";b", 99))
	}
	if err := os.WriteFile(name, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(s) {
			continue
		}
		at, cmd := startServe(t, name)
		if made, _ := filepath.Glob(temporary + "/goprof-serve-*"); len(made) != 1 {
			t.Errorf("%v are made", made)
		}
		go http.Get(at + "flame?file=large.collapsed")
		time.Sleep(100 * time.Millisecond) // a page that is not begun, or is made, ends well, too
		cmd.Process.Signal(s)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: serve ended with %v", s, err)
		}
		if left, _ := os.ReadDir(temporary); len(left) != 0 {
			t.Errorf("%v leaves %v", s, left)
		}
	}
}

// startServe starts goprof serve, and returns its address.
func startServe(t *testing.T, what string) (string, *exec.Cmd) {
	t.Helper()
	cmd := exec.Command("goprof", "serve", what)
	told, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState != nil {
			return // the test has ended it
		}
		cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("serve ended with %v", err)
		}
	})
	line, err := bufio.NewReader(told).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(line)[1], cmd
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
