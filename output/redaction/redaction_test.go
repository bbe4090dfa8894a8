package redaction

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"

	"goprof/output"
	"goprof/output/dumps"
	"goprof/output/findings"
	"goprof/profile"
	"goprof/profile/contention"
	"goprof/profile/redact"
)

func redactor() *redact.Redactor {
	return redact.New(redact.Default(), []byte("the key of these tests"))
}

func packed(t *testing.T, data []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(data)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestSearch: a word is found in any form and at any place.
func TestSearch(t *testing.T) {
	const secret = "Geheimnis.Größe"
	units := utf16.Encode([]rune(secret))
	var wide, numbers []byte
	for _, u := range units {
		wide = append(wide, byte(u), byte(u>>8))
		for ; u >= 0x80; u >>= 7 {
			numbers = append(numbers, byte(u)|0x80)
		}
		numbers = append(numbers, byte(u))
	}
	var z bytes.Buffer
	archive := zip.NewWriter(&z)
	entry, _ := archive.Create("a/b.txt")
	entry.Write([]byte("x" + secret))
	archive.Close()
	long := strings.Repeat("nothing here ", 20) + secret
	for name, file := range map[string][]byte{
		"plain": []byte("a " + secret + " b"), "capitals": []byte("GEHEIMNIS.GRÖSSE geheimnis.größe"), "utf-16": wide,
		"jfr": numbers, "latin-1": []byte("Geheimnis.Gr\xf6\xdfe"), "json": []byte(`"geheimnis.gr\u00f6\u00dfe"`),
		"url": []byte("geheimnis.gr%C3%B6%C3%9Fe"), "html": []byte("geheimnis.gr&ouml;ße Geheimnis.Größe"),
		"class": []byte("LGeheimnis/Größe;"),
		"gzip":  packed(t, []byte(long)), "gzip in gzip": packed(t, packed(t, []byte(long))), "zip": z.Bytes(),
		"base64": []byte(`"nodes":"` + base64.StdEncoding.EncodeToString([]byte(long)) + `"`),
		"packed base64": []byte(base64.RawURLEncoding.EncodeToString(packed(t, []byte(strings.Repeat("qwertzuiop",
			3)+long)))),
		"short names": []byte(`{"names":["ANot","AGeheim","Gnis.Größe"]}`),
	} {
		left, err := Search(bytes.NewReader(file), []string{"absent", secret})
		if err != nil || len(left) != 1 || left[0].Word != secret {
			t.Errorf("%s: %v %v", name, left, err)
		}
	}
	if left, err := Search(strings.NewReader(long), []string{"absent"}); err != nil || len(left) != 0 {
		t.Errorf("%v %v", left, err)
	}
	if _, err := Words(strings.NewReader("ab\n")); err == nil {
		t.Error("a word of two letters is taken")
	}
}

// TestKnownKeys compares the list of keys with the fields that goprof writes.
func TestKnownKeys(t *testing.T) {
	tag := regexp.MustCompile("json:\"([a-zA-Z_]+)")
	for _, folder := range []string{"..", "../findings", "../snap", "../../profile", "../../profile/contention"} {
		files, _ := filepath.Glob(filepath.Join(folder, "*.go"))
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range tag.FindAllStringSubmatch(string(text), -1) {
				if !knownKeys[m[1]] {
					t.Errorf("%s writes %q, which keys.go lacks", name, m[1])
				}
			}
		}
	}
}

// rewritten returns JSON after redaction.
func rewritten(t *testing.T, write func(*bytes.Buffer) error) string {
	t.Helper()
	var in, out bytes.Buffer
	if err := write(&in); err != nil {
		t.Fatal(err)
	}
	if err := rewriteJSON(&out, &in, redactor()); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(out.Bytes()) {
		t.Errorf("no JSON: %s", out.String())
	}
	if at := strings.Index(strings.ToLower(out.String()), "qxzz"); at >= 0 {
		t.Errorf("%s", out.String()[max(0, at-60):min(at+60, out.Len())])
	}
	return out.String()
}

// TestJSON: dumps, locks and triage keep their shape and goprof's own words. No part of a secret is left.
func TestJSON(t *testing.T) {
	lock := profile.Lock{Kind: profile.Monitor, Class: "com.qxzz.Lock", ID: 0x10}
	threads := []profile.ThreadDump{{TID: 7, Name: "qxzz-worker-1", State: "BLOCKED", Java: true,
		Stack: profile.Stack{Frames: []profile.Frame{
			{Func: &profile.Func{Name: "com.qxzz.Shop.qxzzPay", File: "Qxzz.java"}, Kind: profile.C2, Line: 3, BCI: 1},
			{Func: &profile.Func{Name: "java.lang.Thread.run", File: "Thread.java"}, Kind: profile.Interpreted, BCI: 1},
			{Func: &profile.Func{Name: "qxzz_f", Module: "/opt/qxzz/libqxzz.so"}, Kind: profile.Native, BCI: -1}}},
		Holds: []profile.HeldLock{{Lock: lock, Frame: 0}}, WaitsFor: &profile.WantedLock{Lock: lock,
			How:   profile.ToEnter,
			Owner: profile.ThreadRef{TID: 8, Name: "qxzz 2"}}}}
	d := &profile.Dump{PID: 7, MainClass: "com.qxzz.Main", VM: "OpenJDK 64-Bit Server VM", Version: "17.0.1+9",
		Threads: threads,
		Core: &profile.Core{File: "core.qxzz", Signal: &profile.Signal{Name: "SIGSEGV", Where: "libqxzz.so",
			Code: []byte{1, 2}},
			Missing: []profile.MissingFile{{Path: "/opt/qxzz.so", Why: "no qxzz"}}}}
	for _, has := range []string{`"kind":"c2"`, `java.lang.Thread.run`, `Thread.java`, `"state":"BLOCKED"`,
		`-worker-1"`, `17.0.1+9`, `"line":3`, "SIGSEGV"} {
		if got := rewritten(t, func(b *bytes.Buffer) error {
			return dumps.JSON(b, d,
				dumps.Shape{Native: true})
		}); !strings.Contains(got, has) {
			t.Errorf("%s is gone: %s", has, got)
		}
	}
	rewritten(t, func(b *bytes.Buffer) error { return dumps.LocksJSON(b, threads, contention.New(threads)) })
	found := &profile.Triage{Findings: []profile.Finding{{ID: profile.CPUHot, Severity: profile.Warning,
		Claim:    "CPU time is burnt in com.qxzz.Hot.loop: the program's threads use 0.6 CPUs.",
		Evidence: []string{"thread \"qxzz\" of /home/qxzz/x y@qxzz.de"},
		Next:     "goprof record --pid 7"}}, Notes: []string{"qxzz"}, Unknown: []profile.Unknown{{ID: profile.CPUShort,
		Why: "qxzz"}}}
	got := rewritten(t, func(b *bytes.Buffer) error { return findings.JSON(b, found) })
	if !strings.Contains(got, "CPU time is burnt in com.") || !strings.Contains(got, `"id":"cpu-hot"`) {
		t.Error(got)
	}
	// The same, but redacted before it is written.
	by := redactor()
	by.Dump(d)
	by.Triage(found)
	for _, v := range []any{d, found} {
		if b, _ := json.Marshal(v); bytes.Contains(bytes.ToLower(b), []byte("qxzz")) {
			t.Errorf("%s", b)
		}
	}
}

// TestCutOffJSON: text that ends too early is an error, in the first value of a file and in later ones.
func TestCutOffJSON(t *testing.T) {
	for _, file := range []string{`{"pid":1`, `{"pid":`, `{"threads":[{"tid":1}`, `{"pid":1} {"pid":2`, `[1,[2`} {
		err := rewriteJSON(io.Discard, strings.NewReader(file), redactor())
		if bad := new(output.BadFile); !errors.As(err, &bad) || !strings.Contains(bad.Problem, "too early") {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestSearchIsBounded: if text unpacks to more than is searched, the result says so.
func TestSearchIsBounded(t *testing.T) {
	var b bytes.Buffer
	z, _ := flate.NewWriter(&b, 9)
	z.Write(make([]byte, 1<<20))
	z.Close()
	s := &search{forms: formsOf([]string{"absent"}), found: make(map[string]string), left: 1 << 19, window: window}
	s.in([]byte(base64.StdEncoding.EncodeToString(b.Bytes())), "in the file", 0)
	if !s.deep {
		t.Errorf("%d bytes are left of the bound, and it was not met", s.left)
	}
}

func FuzzRewrite(f *testing.F) {
	f.Add([]byte(`{"name":"a.b.C","frames":[{"name":"x","file":"y"}],"x":1.5e3,"y":null,"z":true}`))
	f.Add([]byte("a;b.C.d_[j];[parked: x] 7\n\n[t tid=1];x 1.5\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		var out bytes.Buffer
		switch KindOf(file) {
		case JSON:
			if rewriteJSON(&out, bytes.NewReader(file), redactor()) == nil && out.Len() == 0 {
				t.Error("nothing was written")
			}
		case Collapsed:
			if rewriteCollapsed(&out, bytes.NewReader(file), redactor()) == nil {
				if was, is := strings.Count(string(file), ";"), strings.Count(out.String(), ";"); is > was {
					t.Errorf("%d frames were %d", is, was)
				}
			}
		}
	})
}
