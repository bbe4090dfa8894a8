//go:build linux

package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"goprof/cmd/goprof/exit"
	"goprof/testdata/jvmtest"
)

// TestAgentLeavesNoSecret: an agent with --redact watches a program that is full of secrets. None of the secrets is
// left in what the agent writes, sends or prints: the files with their names (in the long form JFR, too), the spool,
// the messages to an OTLP server and to a Pyroscope server, the page of its counts, and its log. TestHiddenNames of
// the agent makes it print things about a JVM.
func TestAgentLeavesNoSecret(t *testing.T) {
	t.Parallel()
	jvmtest.NotQuick(t, jvmtest.StartsJVM)
	jdks := jvmtest.JDKs(t)
	dir := t.TempDir()
	put(t, filepath.Join(dir, "words"), strings.Join(planted, "\n"))
	home := filepath.Join(dir, "hushpuppy-home")
	put(t, filepath.Join(home, "wobblegong-payroll-2019.txt"), "nothing")
	pid, _ := secretive(t, jdks[len(jdks)-1], "ZorblattLedger", dir, home)
	formats := []string{"pprof", "jfr"}
	if os.Getenv("GOPROF_PROVE") != "1" {
		formats = formats[:1]
	}
	for _, format := range formats {
		agentOfSecrets(t, dir, pid, format)
	}
}

// agentOfSecrets runs an agent until its server has got messages about the JVM.
func agentOfSecrets(t *testing.T, dir, pid, format string) {
	t.Helper()
	seen := filepath.Join(dir, "seen-"+format)
	server := &listener{dir: filepath.Join(seen, "got")}
	at := httptest.NewServer(server)
	defer at.Close()
	port := freePort(t)
	a := startAgent(t, "--files", filepath.Join(seen, "files"), "--files-format", format, "--match", "main=ZorblattLedger",
		"--redact", "default", "--rate", "200", "--otlp", at.URL, "--pyroscope", at.URL, "--parca", "http://127.0.0.1:1",
		"--spool", filepath.Join(seen, "spool"), "--listen", port)
	for end := time.Now().Add(agentLimit); server.got.Load() < 4; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d messages\n%s", server.got.Load(), &a.log)
		}
	}
	put(t, filepath.Join(seen, "metrics"), page(t, "http://"+port+"/metrics"))
	copyTree(t, filepath.Join(seen, "spool"), filepath.Join(seen, "spool-then"))
	a.end(t)
	put(t, filepath.Join(seen, "log"), a.log.String())
	kinds, names := map[string]int{}, ""
	filepath.WalkDir(seen, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		short := strings.TrimPrefix(name, seen+"/")
		kinds[strings.Split(short, "/")[0]]++
		names += short + "\n"
		if info, _ := d.Info(); info != nil && info.Size() > 0 {
			looking(t, dir, exit.OK, "redact", name, "--verify", "words")
		}
		return nil
	})
	put(t, filepath.Join(dir, "names"), names)
	looking(t, dir, exit.OK, "redact", "names", "--verify", "words")
	t.Logf("%s: %v", format, kinds)
	for _, kind := range []string{"files", "got", "metrics", "log", "spool-then"} {
		if kinds[kind] == 0 {
			t.Errorf("nothing of %s was looked at", kind)
		}
	}
}

// listener keeps all messages that it gets.
type listener struct {
	dir string
	mu  sync.Mutex
	got atomic.Int64
}

func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		if z, err := gzip.NewReader(body); err == nil {
			body = z
		}
	}
	b, _ := io.ReadAll(body)
	l.mu.Lock()
	defer l.mu.Unlock()
	os.MkdirAll(l.dir, 0o755)
	head := fmt.Sprintf("%s\n%v\n", r.URL, r.Header)
	os.WriteFile(filepath.Join(l.dir, strconv.FormatInt(l.got.Load(), 10)), append([]byte(head), b...), 0o600)
	l.got.Add(1)
}

func page(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil || len(b) == 0 {
		t.Fatal(len(b), err)
	}
	return string(b)
}

// copyTree copies a folder that changes meanwhile. A file that goes away before it is copied is left out.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	filepath.WalkDir(from, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if text, err := os.ReadFile(name); err == nil {
			put(t, filepath.Join(to, strings.TrimPrefix(name, from)), string(text))
		}
		return nil
	})
}
