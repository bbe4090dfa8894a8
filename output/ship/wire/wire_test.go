package wire

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"goprof/output/ship"
	"goprof/profile/protobuf"
	"goprof/testdata/shipped"
)

func client(t *testing.T, o Options) *Client {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// verdict returns what a failure means for its message.
func verdict(err error) string {
	var f *ship.Failure
	switch {
	case err == nil:
		return "sent"
	case !errors.As(err, &f):
		return "no failure of ship's: " + err.Error()
	case f.Final:
		return "final"
	case f.Doubtful:
		return "doubtful"
	case f.After > 0:
		return "after " + f.After.String()
	}
	return "again"
}

// TestStatuses: what each status of HTTP means for the message.
func TestStatuses(t *testing.T) {
	status, header := 0, http.Header{}
	at := shipped.Listen(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		io.WriteString(w, "because \x1b[31m"+strings.Repeat("x", 1<<20))
	})
	c := client(t, Options{URL: "http://" + at, Path: "/v1"})
	for _, row := range []struct {
		status int
		after  string
		want   string
	}{
		{200, "", "sent"}, {202, "", "sent"}, {400, "", "final"}, {401, "", "again"}, {403, "", "again"}, {404, "", "again"},
		{408, "", "again"}, {413, "", "final"}, {415, "", "final"}, {422, "", "final"}, {429, "", "again"},
		{429, "7", "after 7s"}, {429, "-7", "again"}, {429, "later", "again"}, {500, "", "doubtful"}, {502, "", "again"},
		{503, "120", "after 2m0s"}, {504, "", "again"}, {302, "", "again"}, {599, "", "doubtful"},
		{429, time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat), "again"},
	} {
		status, header = row.status, http.Header{"Location": {"http://127.0.0.1:1/"}}
		if row.after != "" {
			header.Set("Retry-After", row.after)
		}
		_, err := c.Post(context.Background(), &Request{Body: []byte("m"), Type: "a/b"})
		if got := verdict(err); got != row.want {
			t.Errorf("%d, %q: %s, want %s", row.status, row.after, got, row.want)
		}
		if err != nil && (len(err.Error()) > 400 || strings.ContainsRune(err.Error(), 0x1b)) {
			t.Errorf("%d: %q", row.status, err)
		}
	}
	status = 500
	if _, err := c.Post(context.Background(), &Request{Is500Final: true}); verdict(err) != "final" {
		t.Errorf("500 of OTLP: %s", verdict(err))
	}
}

// detail returns a google.rpc.Status that asks for a wait.
func detail(seconds uint64) string {
	value := protobuf.Bytes(nil, 1, protobuf.Uint(nil, 1, seconds))
	any := protobuf.Text(nil, 1, "type.googleapis.com/google.rpc.RetryInfo")
	return base64.RawStdEncoding.EncodeToString(protobuf.Bytes(protobuf.Uint(nil, 1, 8), 3, protobuf.Bytes(any, 2, value)))
}

// TestCodes: the meaning of each gRPC status, as a trailer, and as a header of an answer without a body.
func TestCodes(t *testing.T) {
	code, details := "", ""
	at := shipped.Listen(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.ProtoMajor != 2 || r.Header.Get("Content-Type") != "application/grpc" || r.Header.Get("Te") != "trailers" ||
			len(body) != 5+3 || binary.BigEndian.Uint32(body[1:]) != 3 || r.URL.Path != "/a.B/C" {
			t.Errorf("%s %v %q", r.Proto, r.Header, body)
		}
		w.Header().Set("Content-Type", "application/grpc")
		if details == "trailers only" {
			w.Header().Set("Grpc-Status", code)
			return
		}
		w.Write([]byte{0, 0, 0, 0, 2, 'o', 'k'})
		if code != "" {
			w.Header().Set(http.TrailerPrefix+"Grpc-Status", code)
		}
		w.Header().Set(http.TrailerPrefix+"Grpc-Message", "why%20not")
		w.Header().Set(http.TrailerPrefix+"Grpc-Status-Details-Bin", details)
	})
	c := client(t, Options{URL: "grpc://" + at, Method: "/a.B/C"})
	for _, row := range []struct{ code, details, want string }{
		{"0", "", "sent"}, {"1", "", "again"}, {"2", "", "doubtful"}, {"3", "", "final"}, {"4", "", "again"},
		{"7", "", "again"}, {"8", "", "doubtful"}, {"8", detail(9), "after 9s"}, {"8", detail(1 << 40), "again"},
		{"8", "%%%", "doubtful"}, {"11", "", "again"}, {"12", "", "again"}, {"13", "", "doubtful"}, {"14", "", "again"},
		{"14", detail(3), "after 3s"}, {"14", "trailers only", "again"}, {"16", "", "again"}, {"", "", "again"},
		{"x", "", "again"}, {"99", "", "final"},
	} {
		code, details = row.code, row.details
		answer, err := c.Call(context.Background(), &Request{Body: []byte("abc")})
		if got := verdict(err); got != row.want || err == nil && string(answer) != "ok" {
			t.Errorf("code %q, %q: %s %q, want %s", row.code, row.details, got, answer, row.want)
		}
	}
}

// TestGzipIsGivenUp: a gRPC server without gzip gets the message uncompressed.
func TestGzipIsGivenUp(t *testing.T) {
	var got []byte
	at := shipped.Listen(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("Grpc-Encoding") == "gzip" {
			w.Header().Set("Grpc-Status", "12")
			w.Header().Set("Grpc-Message", `grpc: Decompressor is not installed for grpc-encoding "gzip"`)
			return
		}
		got = body
		w.Header().Set("Grpc-Status", "0")
	})
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, "message")
	z.Close()
	c := client(t, Options{URL: "grpc://" + at, Method: "/a.B/C"})
	if _, err := c.Call(context.Background(), &Request{Body: packed.Bytes(), Gzip: true}); err != nil ||
		string(got) != "\x00\x00\x00\x00\x07message" {
		t.Errorf("%v %q", err, got)
	}
}

// TestConnections: what happens to a message if there is no answer.
func TestConnections(t *testing.T) {
	reset := shipped.Listen(t, func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	hold := make(chan struct{})
	silent := shipped.Listen(t, func(_ http.ResponseWriter, r *http.Request) { <-hold })
	garbage, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer garbage.Close()
	go func() {
		for {
			c, err := garbage.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "220 mail ready\r\n")
			c.Close()
		}
	}()
	for name, at := range map[string]string{"reset": reset, "closed": closed.Addr().String(), "silent": silent,
		"garbage": garbage.Addr().String()} {
		for _, scheme := range []string{"http", "grpc", "https", "grpcs"} {
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			c := client(t, Options{URL: scheme + "://" + at, Method: "/a.B/C"})
			call := c.Post
			if c.IsGRPC() {
				call = c.Call
			}
			if _, err := call(ctx, &Request{Body: []byte("m")}); verdict(err) != "again" {
				t.Errorf("%s, %s: %s", name, scheme, verdict(err))
			}
			cancel()
		}
	}
	close(hold)
}

// TestHeaders: a file of headers is read before each call. Its contents are in no message to the user.
func TestHeaders(t *testing.T) {
	var got http.Header
	at := shipped.Listen(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	file := filepath.Join(t.TempDir(), "headers")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# token\n\nauthorization:  Bearer one \nX-Scope-OrgID: a\n")
	c := client(t, Options{URL: "http://" + at, HeaderFile: file, Agent: "goprof/1"})
	post := func() error {
		_, err := c.Post(context.Background(), &Request{Type: "a/b", Gzip: true})
		return err
	}
	if err := post(); err != nil || got.Get("Authorization") != "Bearer one" || got.Get("X-Scope-Orgid") != "a" ||
		got.Get("User-Agent") != "goprof/1" || got.Get("Content-Encoding") != "gzip" || got.Get("Content-Type") != "a/b" {
		t.Errorf("%v %v", err, got)
	}
	write("Authorization: Bearer two\n")
	if err := post(); err != nil || got.Get("Authorization") != "Bearer two" {
		t.Errorf("%v %v", err, got)
	}
	for _, text := range []string{"secret", "a b: secret", ": secret", "A: secret\x00",
		strings.Repeat("x: y\n", maxHeaderFile)} {
		write(text)
		if err := post(); verdict(err) != "again" || strings.Contains(err.Error(), "secret") {
			t.Errorf("%.20q: %v", text, err)
		}
		if _, err := New(Options{URL: "http://" + at, HeaderFile: file}); err == nil {
			t.Errorf("%.20q is taken at the start", text)
		}
	}
}

func TestURLs(t *testing.T) {
	for text, want := range map[string]string{
		"http://h:1":          "http://h:1/v1/p",
		"http://h:1/":         "http://h:1/v1/p",
		"https://h/base":      "https://h/base/v1/p",
		"https://h/base/v1/p": "https://h/base/v1/p",
		"grpc://h:4317":       "http://h:4317/a.B/C",
		"grpcs://[::1]:4317":  "https://[::1]:4317/a.B/C",
		"h:4317":              "", "": "", "http://": "", "ftp://h": "", "http://u:secret@h": "", "http://h?x": "",
		"http://:80": "", "http://h\n": "", "http://u:se/secret@h": "", "http://u:%secret@h": "", "http://h?token=secret": "",
	} {
		c, err := New(Options{URL: text, Path: "/v1/p", Method: "/a.B/C"})
		switch {
		case err != nil && (want != "" || strings.Contains(err.Error(), "secret")):
			t.Errorf("%q: %v", text, err)
		case err == nil && c.url.String() != want:
			t.Errorf("%q becomes %q", text, c.url)
		}
	}
}

func FuzzRetryDelay(f *testing.F) {
	f.Add(detail(5))
	f.Fuzz(func(t *testing.T, text string) {
		if d, _ := retryDelay(text); d < 0 || d > 25*time.Hour {
			t.Error(d)
		}
	})
}
