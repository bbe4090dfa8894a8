package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// echo is a server with two tools: one says what it was asked, the other waits until its call ends.
func echo() *Server {
	limit := func(Args) time.Duration { return time.Minute }
	return &Server{Name: "test", Version: "v1", Tools: []Tool{
		{Name: "say", What: "says", Limit: limit, Options: []Option{{Name: "text", Kind: Text, Needed: true},
			{Name: "times", Kind: Integer, Least: 1, Most: 1_000_000}, {Name: "of", Kind: Text, Words: []string{"a", "b"}},
			{Name: "loud", Kind: Switch}},
			Call: func(_ context.Context, a Args) (string, error) {
				if a.Text("text") == "wrong" {
					return "", errors.New("that is wrong")
				}
				return strings.Repeat(a.Text("text")+"\n", max(a.Int("times"), 1)), nil
			}},
		{Name: "wait", What: "waits", Limit: func(Args) time.Duration { return 50 * time.Millisecond },
			Call: func(ctx context.Context, _ Args) (string, error) {
				<-ctx.Done()
				return "", context.Cause(ctx)
			}},
	}}
}

// conversation is a client's line (>) and what must stand in the answer (<), or that there is none.
const conversation = `
> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}
< "instructions":"","protocolVersion":"2025-06-18","serverInfo":{"name":"test","version":"v1"}}
> {"jsonrpc":"2.0","method":"notifications/initialized"}
> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"1999-01-01"}}
< "protocolVersion":"2025-11-25"
> {"jsonrpc":"2.0","id":"p","method":"ping"}
< "id":"p","jsonrpc":"2.0","result":{}}
> {"jsonrpc":"2.0","id":2,"method":"tools/list"}
< "properties":{"loud":{"description":"","type":"boolean"},"of":{"description":"","enum":["a","b"],"type":"string"},"p
> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"say","arguments":{"text":"hello"}}}
< "content":[{"text":"hello\n","type":"text"}],"isError":false
> {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"say","arguments":{"text":"x","times":301}}}
< [cut: these are lines 1 to 300 of 302. The same call with page 2 shows more.]\n
> {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"say","arguments":{"text":"x","times":301,"page":2}}}
< "content":[{"text":"x\n","type":"text"}],"isError":false
> {"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"say","arguments":{"text":"wrong"}}}
< "text":"that is wrong","type":"text"}],"isError":true
> {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"say"}}
< say needs the argument text
> {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"say","arguments":{"text":"a","of":"c"}}}
< of is one of a, b
> {"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"say","arguments":{"text":"a","times":0}}}
< times is from 1 to 1000000
> {"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":"say","arguments":{"text":"a","colour":0}}}
< say has no argument \"colour\"; it has text, times, of, loud, page
> {"jsonrpc":"2.0","id":11,"method":"tools/call","params":{"name":"say","arguments":{"text":"a\nb"}}}
< text is one line
> {"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"rm"}}
< "error":{"code":-32602
> {"jsonrpc":"2.0","id":13,"method":"resources/list"}
< "error":{"code":-32601
> {"jsonrpc":"2.0","id":14,"method":"tools/call","params":{"name":"wait"}}
< the call took longer than 50ms
> [{"jsonrpc":"2.0","id":15,"method":"ping"}]
< "error":{"code":-32600
> no JSON at all
< "error":{"code":-32700
> {"jsonrpc":"2.0","id":{"a":1},"method":"ping"}
< "id":null,"jsonrpc":"2.0"
> {"jsonrpc":"2.0","result":{}, "id":16}
> {"jsonrpc":"2.0","id":17,"method":"ping"}
< "id":17,
`

func TestConversation(t *testing.T) {
	in, say := io.Pipe()
	hear, out := io.Pipe()
	ended := make(chan error)
	go func() { ended <- echo().Serve(context.Background(), in, out) }()
	answers := json.NewDecoder(hear)
	for line := range strings.Lines(strings.TrimSpace(conversation)) {
		line = strings.TrimSuffix(line, "\n")
		if text, is := strings.CutPrefix(line, "> "); is {
			io.WriteString(say, text+"\n")
			continue
		}
		var answer json.RawMessage
		if err := answers.Decode(&answer); err != nil {
			t.Fatal(err)
		}
		if want := strings.TrimPrefix(line, "< "); !strings.Contains(string(answer), want) {
			t.Errorf("%s\nis not in\n%s", want, answer)
		}
	}
	say.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestCancel: a call that is cancelled has no answer, and the next one has its turn. The input's end ends a call, too.
func TestCancel(t *testing.T) {
	s := echo()
	s.Tools[1].Limit = func(Args) time.Duration { return time.Hour }
	in, say := io.Pipe()
	hear, out := io.Pipe()
	ended := make(chan error)
	go func() { ended <- s.Serve(context.Background(), in, out) }()
	io.WriteString(say, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}}
{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}}
`)
	answers := json.NewDecoder(hear)
	next := func(want string) {
		t.Helper()
		var answer json.RawMessage
		if err := answers.Decode(&answer); err != nil || !strings.Contains(string(answer), want) {
			t.Errorf("%v: %s has no %s", err, answer, want)
		}
	}
	next(`one of that id`)
	io.WriteString(say, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"say","arguments":{"text":"next"}}}
`)
	next(`"id":2,`)
	io.WriteString(say, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"wait"}}`+"\n")
	say.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestLongLine: a line that is too long is answered, and the next one is read.
func TestLongLine(t *testing.T) {
	var out bytes.Buffer
	in := `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 3*maxLine) + "\"}\n" +
		`{"jsonrpc":"2.0","id":2,"method":"ping"}` + "\n"
	if err := echo().Serve(context.Background(), strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	first, second, _ := strings.Cut(out.String(), "\n")
	if !strings.Contains(first, "-32700") || !strings.Contains(second, `"id":2`) {
		t.Error(out.String())
	}
}

// TestPages: all pages together are the text, each is bounded, and each but the last says that there is more.
func TestPages(t *testing.T) {
	for name, text := range map[string]string{"lines": strings.Repeat("some line\n", 1000),
		"wide": strings.Repeat("ä", 50_000), "empty": "", "short": "a",
		"both": strings.Repeat(strings.Repeat("x", 900)+"\n", 100)} {
		var all strings.Builder
		for page := 1; ; page++ {
			got := cut(text, page)
			at := strings.LastIndex(got, "[cut: ")
			if at < 0 {
				all.WriteString(got)
				break
			}
			if at > pageBytes || strings.Count(got[:at], "\n") > pageLines || page > 100 {
				t.Errorf("%s: page %d has %d bytes", name, page, at)
			}
			all.WriteString(got[:at])
		}
		if all.String() != text {
			t.Errorf("%s: pages are %d bytes, not %d", name, all.Len(), len(text))
		}
	}
	if got := cut("a\n", 2); !strings.Contains(got, "no page 2") {
		t.Error(got)
	}
}

// FuzzServe: whatever a client says, each line of the answer is one object of JSON-RPC, and the server ends with
// its input.
func FuzzServe(f *testing.F) {
	for line := range strings.Lines(conversation) {
		if text, is := strings.CutPrefix(line, "> "); is {
			f.Add([]byte(text))
		}
	}
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"text":null}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1e999,"method":"tools/call","params":[]}` + "\n{}\n[]\nnull\n\"x\""))
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		if err := echo().Serve(context.Background(), bytes.NewReader(in), &out); err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(out.Bytes()) {
			var m struct {
				Version       string `json:"jsonrpc"`
				ID            *json.RawMessage
				Result, Error json.RawMessage
			}
			if err := json.Unmarshal(line, &m); err != nil || m.Version != "2.0" || (m.Result == nil) == (m.Error == nil) {
				t.Fatalf("%v: %s", err, line)
			}
		}
		if lines := bytes.Count(out.Bytes(), []byte("\n")); lines > bytes.Count(in, []byte("\n"))+1 {
			t.Fatalf("%d answers", lines)
		}
	})
}
