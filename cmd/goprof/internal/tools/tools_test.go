package tools

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"goprof/cmd/goprof/mcp"
	"goprof/profile/redact"
)

// echoing are tools that print the command line of goprof that they would run.
func echoing(t *testing.T) *Server {
	echo, err := exec.LookPath("echo")
	if err != nil {
		t.Fatal(err)
	}
	return &Server{goprof: echo, dir: t.TempDir(), own: t.TempDir(), made: map[string]bool{}}
}

func (m *Server) call(t *testing.T, tool string, args mcp.Args) (string, error) {
	t.Helper()
	for _, one := range m.Tools() {
		if one.Name == tool {
			return one.Call(context.Background(), args)
		}
	}
	t.Fatal(tool)
	return "", nil
}

// TestMCPCommands: what a client says becomes the value of a flag, or the name of a file in the server's folder.
func TestMCPCommands(t *testing.T) {
	m := echoing(t)
	os.WriteFile(filepath.Join(m.dir, "a.jfr"), nil, 0o600)
	os.WriteFile(filepath.Join(m.dir, "a.zip"), []byte("PK\x03\x04"), 0o600)
	os.WriteFile(filepath.Join(m.dir, "-o"), nil, 0o600)
	for _, c := range []struct {
		tool string
		args mcp.Args
		want string // of the command line; empty: refused
	}{
		{"triage", mcp.Args{"pid": 7, "seconds": 20}, "triage --pid 7 -d 20\n"},
		{"dump", mcp.Args{"pid": 7}, "dump --pid 7 --group\n"},
		{"dump", mcp.Args{"file": "a.zip"}, "dump a.zip\n"},
		{"dump", mcp.Args{"file": "a.zip", "pid": 7}, ""},
		{"dump", mcp.Args{"file": "a.zip", "pools": false, "page": 2}, "dump a.zip\n"},
		{"dump", mcp.Args{"file": "a.zip", "pools": true}, ""},
		{"triage", mcp.Args{"file": "a.zip", "seconds": 20}, ""},
		{"heap", mcp.Args{"file": "a.zip", "top": 3}, ""},
		{"dump", mcp.Args{}, ""},
		{"heap", mcp.Args{"file": "a.jfr"}, ""},
		{"record", mcp.Args{"pid": 7, "of": "wall"}, "record --pid 7 -d 15s -o recording-1.jfr --mode wall\n"},
		{"report", mcp.Args{"file": "a.jfr", "thread": "--output=x", "by": "class"},
			"report a.jfr --by=class --thread=--output=x\n"},
		{"report", mcp.Args{"file": "a.jfr", "changes": true, "from": "10s"}, "heat --text a.jfr --from=10s\n"},
		{"diff", mcp.Args{"before": "a.jfr", "after_time": "9s-"}, "diff a.jfr a.jfr --after=9s-\n"},
		{"report", mcp.Args{"file": "-o"}, ""},
		{"report", mcp.Args{"file": "../a.jfr"}, ""},
		{"report", mcp.Args{"file": "/etc/passwd"}, ""},
		{"report", mcp.Args{"file": ".."}, ""},
		{"report", mcp.Args{"file": ""}, ""},
	} {
		got, err := m.call(t, c.tool, c.args)
		if got = strings.ReplaceAll(got, m.dir+"/", ""); (err != nil) != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s %v: %q %v", c.tool, c.args, got, err)
		}
	}
}

// TestMCPSnapArguments: an error names the arguments that do not go with a snap.
func TestMCPSnapArguments(t *testing.T) {
	m := echoing(t)
	os.WriteFile(filepath.Join(m.dir, "a.zip"), []byte("PK\x03\x04"), 0o600)
	_, err := m.call(t, "dump", mcp.Args{"file": "a.zip", "virtual": true, "pools": true})
	if err == nil || !strings.HasPrefix(err.Error(), "with file, dump takes no pools, virtual: ") {
		t.Error(err)
	}
}

// TestMCPRedacts: commands that look at a JVM have the server's key. A recording that the server has not made is read
// without its names.
func TestMCPRedacts(t *testing.T) {
	m := echoing(t)
	m.by, m.key = redact.New(redact.Default(), []byte("key")), "KEY"
	os.WriteFile(filepath.Join(m.dir, "a.jfr"), nil, 0o600)
	for _, tool := range []string{"triage", "dump", "locks", "record", "heap", "snap"} {
		got, err := m.call(t, tool, mcp.Args{"pid": 7})
		if err != nil || !strings.Contains(got, "--redact default --redact-key KEY") {
			t.Errorf("%s: %q %v", tool, got, err)
		}
	}
	got, err := m.call(t, "report", mcp.Args{"file": "a.jfr"})
	if err != nil || !strings.HasPrefix(got, "report "+m.own+"/a.jfr") {
		t.Errorf("%q %v", got, err)
	}
	m.keep("a.jfr")
	if got, err := m.call(t, "report", mcp.Args{"file": "a.jfr"}); err != nil || !strings.HasPrefix(got, "report a.jfr") &&
		!strings.HasPrefix(got, "report "+m.dir+"/a.jfr") {
		t.Errorf("%q %v", got, err)
	}
	for range mostMade {
		m.keep("b.jfr")
	}
	if _, err := m.find("a.jfr"); err == nil {
		t.Error("the oldest recording was not removed")
	}
}
