package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
)

// Server answers one client.
type Server struct {
	Name, Version, Instructions string
	Tools                       []Tool

	mu    sync.Mutex
	to    io.Writer
	err   error // the first failed write
	calls map[string]context.CancelFunc
	turn  chan struct{} // one call runs at a time, because all look at the same machine
	all   sync.WaitGroup
	pages pages
}

const (
	// maxLine limits a message, maxCalls the waiting calls.
	maxLine  = 1 << 20
	maxCalls = 16
)

// versions of the protocol, the newest first. The parts that this server uses are the same in all.
var versions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// Codes of errors: JSON-RPC 2.0, section 5.1.
const (
	notJSON    = -32700
	noRequest  = -32600
	noMethod   = -32601
	badRequest = -32602
)

// message is a request, or a notification, which has no id. Answers from the client have no method.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

// Serve answers until the input or ctx ends. Then it ends the running calls. It returns errors of writing.
func (s *Server) Serve(ctx context.Context, from io.Reader, to io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	s.to, s.calls, s.turn = to, map[string]context.CancelFunc{}, make(chan struct{}, 1)
	lines := make(chan []byte)
	go func() {
		defer close(lines)
		in := bufio.NewReaderSize(from, maxLine)
		for {
			line, err := readLine(in)
			select {
			case lines <- line:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	for open := true; open && s.failed() == nil; {
		var line []byte
		select {
		case line, open = <-lines:
			if line = bytes.TrimSpace(line); len(line) > 0 {
				s.take(ctx, line)
			}
		case <-ctx.Done():
			open = false
		}
	}
	stop()
	s.all.Wait()
	return s.failed()
}

// tooLong stands for a line of more than maxLine bytes.
var tooLong = []byte("too long")

func readLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return bytes.Clone(line), err
	}
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = in.ReadSlice('\n')
	}
	return tooLong, err
}

func (s *Server) take(ctx context.Context, line []byte) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		code, why := notJSON, "no JSON, or a line of more than 1 MB"
		if json.Valid(line) {
			code, why = noRequest, "no single request of JSON-RPC 2.0"
		}
		s.fail(nil, code, why)
		return
	}
	if string(m.ID) == "null" {
		m.ID = nil
	}
	switch {
	case m.Method == "":
		if m.ID == nil {
			s.fail(nil, noRequest, "no method")
		}
	case m.Version != "2.0" || m.ID != nil && !isID(m.ID):
		s.fail(nil, noRequest, "no request of JSON-RPC 2.0")
	case m.ID == nil:
		s.note(&m)
	default:
		s.request(ctx, &m)
	}
}

func isID(id json.RawMessage) bool {
	return len(id) <= 200 && id[0] != '{' && id[0] != '[' && id[0] != 't' && id[0] != 'f'
}

// note handles a notification. Unknown notifications need no answer.
func (s *Server) note(m *message) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	if m.Method == "notifications/cancelled" && json.Unmarshal(m.Params, &p) == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if cancel := s.calls[string(p.ID)]; cancel != nil {
			cancel()
		}
	}
}

func (s *Server) request(ctx context.Context, m *message) {
	switch m.Method {
	case "initialize":
		var p struct {
			Version string `json:"protocolVersion"`
		}
		json.Unmarshal(m.Params, &p)
		if !slices.Contains(versions, p.Version) {
			p.Version = versions[0]
		}
		s.answer(m.ID, map[string]any{"protocolVersion": p.Version, "instructions": s.Instructions,
			"capabilities": map[string]any{"tools": map[string]any{}},
			"serverInfo":   map[string]any{"name": s.Name, "version": s.Version}})
	case "ping":
		s.answer(m.ID, map[string]any{})
	case "tools/list":
		list := []map[string]any{}
		for i := range s.Tools {
			t := s.Tools[i]
			t.Options = append(slices.Clone(t.Options), pageOption)
			list = append(list, t.schema())
		}
		s.answer(m.ID, map[string]any{"tools": list})
	case "tools/call":
		s.call(ctx, m)
	default:
		s.fail(m.ID, noMethod, "there is no method of that name")
	}
}

// call starts a call. It does not wait for the result.
func (s *Server) call(ctx context.Context, m *message) {
	var p struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"arguments"`
	}
	json.Unmarshal(m.Params, &p)
	i := slices.IndexFunc(s.Tools, func(t Tool) bool { return t.Name == p.Name })
	if i < 0 {
		s.fail(m.ID, badRequest, "there is no tool of that name")
		return
	}
	t := s.Tools[i]
	t.Options = append(slices.Clone(t.Options), pageOption)
	args, err := t.check(p.Args)
	if err != nil {
		s.tell(m.ID, err.Error(), true)
		return
	}
	id := string(m.ID)
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	_, twice := s.calls[id]
	full := len(s.calls) >= maxCalls
	if !twice && !full {
		s.calls[id] = cancel
	}
	s.mu.Unlock()
	if twice || full {
		cancel()
		s.fail(m.ID, noRequest, "too many calls are under way, or one of that id")
		return
	}
	s.all.Go(func() {
		defer func() {
			cancel()
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.calls, id)
		}()
		text, failed := s.work(ctx, &t, args)
		if ctx.Err() == nil { // a cancelled call needs no answer
			s.tell(m.ID, text, failed)
		}
	})
}

// work waits for its turn. Then it calls the tool, or returns another page of a kept answer.
func (s *Server) work(ctx context.Context, t *Tool, args Args) (text string, failed bool) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return "", true
	}
	defer func() { <-s.turn }()
	key, page := keyOf(t.Name, args), max(args.Int(pageOption.Name), 1)
	if page > 1 {
		if text, ok := s.pages.get(key); ok {
			return cut(text, page), false
		}
	}
	limit := t.Limit(args)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errLate(limit))
	defer cancel()
	text, err := t.Call(ctx, args)
	if err != nil {
		return cut(err.Error(), 1), true
	}
	s.pages.keep(key, text)
	return cut(text, page), false
}

func (s *Server) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// tell sends the result of a tool.
func (s *Server) tell(id json.RawMessage, text string, failed bool) {
	s.answer(id, map[string]any{"content": []map[string]any{{"type": "text", "text": text}}, "isError": failed})
}

func (s *Server) answer(id json.RawMessage, result any) {
	s.write(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
}

func (s *Server) fail(id json.RawMessage, code int, why string) {
	s.write(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": why}})
}

func (s *Server) write(what map[string]any) {
	b, err := json.Marshal(what)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.err == nil {
		_, err = s.to.Write(append(b, '\n'))
	}
	s.err = cmp.Or(s.err, err)
}
