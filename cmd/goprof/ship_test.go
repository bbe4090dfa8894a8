//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"goprof/cmd/goprof/exit"
	"goprof/output/jfr"
	"goprof/profile"
	"goprof/testdata/shipped"
)

// collected is a collector in memory. It refuses messages as long as it has a status for that.
type collected struct {
	mu       sync.Mutex
	messages [][]byte
	status   int
}

func (c *collected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status != 0 {
		w.WriteHeader(c.status)
		return
	}
	z, err := gzip.NewReader(r.Body)
	if err == nil {
		var message []byte
		if message, err = io.ReadAll(z); err == nil {
			c.messages = append(c.messages, message)
		}
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
	}
}

func (c *collected) counts(t *testing.T) shipped.Counts {
	all := make(shipped.Counts)
	for _, m := range c.messages {
		for stack, n := range shipped.OTLP(t, shipped.ParseOTLP(t, m), "samples") {
			all[stack] += n
		}
	}
	return all
}

// TestShip: a recording with times arrives in parts, each look once. If a server takes nothing, goprof ends with a
// code of its own, and the messages stay in the spool for the next goprof.
func TestShip(t *testing.T) {
	samples := shipped.Samples(300, false)
	var data bytes.Buffer
	w := jfr.NewWriter(&data, jfr.Options{})
	w.SetMeta(profile.Meta{Version: "1", Host: "h", PID: 7, MainClass: "/srv/shop.jar", Mode: profile.ModeCPU,
		Interval: shipped.Interval, Weight: profile.CPUTime})
	for _, s := range samples {
		if err := w.Sample(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(samples[len(samples)-1].At); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, spool := filepath.Join(dir, "out.jfr"), ""
	if err := os.WriteFile(file, data.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	server := &collected{}
	s := httptest.NewServer(server)
	defer s.Close()
	want := make(shipped.Counts)
	for stack, n := range shipped.Collapsed(t, samples, profile.Samples) {
		want[strings.ReplaceAll(stack, "</", "<.")] = n // JFR has "/" in place of the dots in a class's name
	}

	code, told := runGoprof(t, "ship", file, "--otlp", s.URL, "--every", "1s", "--attribute", "team=cart")
	if code != exit.OK || !strings.Contains(told, "3 of 3 batches, 300 samples") || len(server.messages) != 3 {
		t.Errorf("%d: %s", code, told)
	}
	shipped.Same(t, "ship", server.counts(t), want)
	attributes := shipped.ParseOTLP(t, server.messages[0]).ResourceProfiles[0].Resource.String()
	for _, value := range []string{`"shop.jar"`, `"cart"`, `"h"`, "7"} {
		if !strings.Contains(attributes, value) {
			t.Errorf("no %s in %s", value, attributes)
		}
	}

	server.messages, server.status = nil, http.StatusServiceUnavailable
	code, told = shipInVain(t, "503", func(wait string) []string {
		spool = filepath.Join(dir, "spool-"+wait)
		return []string{file, "--otlp", s.URL, "--wait", wait, "--spool", spool}
	})
	if code != exit.Undelivered || !strings.Contains(told, "503") {
		t.Errorf("%d: %s", code, told)
	}
	server.status = 0
	code, told = runGoprof(t, "ship", file, "--otlp", s.URL, "--spool", spool, "--to", "10ms")
	if code != exit.OK {
		t.Errorf("%d: %s", code, told)
	}
	got := server.counts(t)
	first := shipped.Collapsed(t, samples[:1], profile.Samples)
	for stack := range first {
		got[stack]-- // these are of the second recording
	}
	shipped.Same(t, "spool", got, want)
}

// shipInVain ships to a server that takes nothing. It waits long enough for the server's answer: goprof may have no
// CPU for a while.
func shipInVain(t *testing.T, answer string, args func(wait string) []string) (code exit.Code, told string) {
	t.Helper()
	for wait := 100 * time.Millisecond; wait < time.Minute && !strings.Contains(told, answer); wait *= 4 {
		code, told = runGoprof(t, append([]string{"ship"}, args(wait.String())...)...)
	}
	return code, told
}

// TestShipSaysWhy: goprof says what is wrong with a command line before it sends anything.
func TestShipSaysWhy(t *testing.T) {
	dir := t.TempDir()
	file, rules := filepath.Join(dir, "x.collapsed"), filepath.Join(dir, "rules")
	for name, text := range map[string]string{file: "a.B.c 3\n", rules: "- action: explode\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, c := range []struct {
		args string
		code exit.Code
		says string
	}{
		{"", exit.General, " --otlp http://localhost:4318"},
		{"--otlp localhost:4318", exit.General, "http://HOST:PORT"},
		{"--otlp http://u:secret@h", exit.General, "password"},
		{"--otlp http://h --otlp http://h", exit.General, "twice"},
		{"--parca http://h --otlp-headers x", exit.General, "without --otlp"},
		{"--otlp http://h --otlp-headers /no/such", exit.General, "/no/such"},
		{"--otlp http://h --relabel " + rules, exit.BadInput, "explode"},
	} {
		code, told := runGoprof(t, append([]string{"ship", file}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(told, c.says) || strings.Contains(told, "secret") {
			t.Errorf("%q: %d, %s", c.args, code, told)
		}
	}
	code, told := shipInVain(t, "refused", func(wait string) []string {
		return []string{file, "--otlp", closed.URL, "--wait", wait}
	})
	if code != exit.Undelivered || !strings.Contains(told, "refused") {
		t.Errorf("nobody listens: %d, %s", code, told)
	}
}
