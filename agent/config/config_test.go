//go:build linux

package config

import (
	"slices"
	"strings"
	"testing"
	"time"

	"goprof/session"
)

func read(t *testing.T, text string) (Config, error) {
	t.Helper()
	c := Default()
	err := Read(&c, "agent.yaml", strings.NewReader(text))
	return c, err
}

func TestFile(t *testing.T) {
	c, err := read(t, `
# comments are allowed
rate: 49
every: 30s
max-cpu: 0.5%
files: /var/lib/goprof
files-format: jfr
files-max-bytes: 2GB
group-threads: true
match:
  - petclinic
  - {user: "^app$", container: ".+"}
deny: ["version=^1[.]8"]
listen: 127.0.0.1:9464
attribute: [k8s.node.name=node-7, "team=cart,pay=1"]
`)
	if err != nil {
		t.Fatal(err)
	}
	if c.Rate != 49 || c.Every != 30*time.Second || c.MaxCPU != 0.005 || c.Files.Dir != "/var/lib/goprof" ||
		!c.Files.JFR || c.Files.MaxBytes != 2e9 || !c.Pools || c.Listen != "127.0.0.1:9464" {
		t.Errorf("%+v", c)
	}
	if len(c.Choice.Match) != 2 || len(c.Choice.Match[1]) != 2 || len(c.Choice.Deny) != 1 {
		t.Errorf("%+v", c.Choice)
	}
	if len(c.Attributes) != 2 || c.Attributes.Get("k8s.node.name") != "node-7" ||
		c.Attributes.Get("team") != "cart,pay=1" {
		t.Errorf("%v", c.Attributes)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

// An error names the line.
func TestWrongFiles(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"unknown key":   {"rate: 19\nrates: 20\n", `line 2: there is no option "rates"`},
		"twice":         {"rate: 19\nrate: 20\n", "rate is there twice"},
		"no number":     {"rate: fast\n", "line 1: rate: \"fast\" is no number"},
		"a list":        {"rate: [1, 2]\n", "line 1: a single value has to stand here"},
		"no list":       {"match: petclinic\n", "match is a list"},
		"unknown fact":  {"match: [{colour: red}]\n", `there is no fact "colour"`},
		"no attribute":  {"attribute: [team]\n", `line 1: "team" is no key=value`},
		"attribute":     {"attribute: [{team: cart}]\n", "line 1: a single value"},
		"empty rule":    {"deny: [{}]\n", "a rule without a part"},
		"bad pattern":   {"match: ['(']\n", "missing closing"},
		"a text":        {"hello\n", "keys and values"},
		"no yaml":       {"a: [\n", "agent.yaml: yaml"},
		"alias":         {"rate: &a 19\nevery: *a\n", "line 2: a single value"},
		"share":         {"max-cpu: 1\n", "needs a percent sign"},
		"size":          {"files-max-bytes: 5 parsecs\n", "is no size"},
		"nothing there": {"listen:\n", "a single value"},
	} {
		if _, err := read(t, c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := read(t, strings.Repeat("#", maxFile+1)); err == nil {
		t.Error("a file without end is read")
	}
	for _, empty := range []string{"", "# nothing\n", "---\n"} {
		if _, err := read(t, empty); err != nil {
			t.Errorf("%q: %v", empty, err)
		}
	}
}

// TestEvents: what is recorded beside CPU time, and of whom. What an agent does not record so is refused.
func TestEvents(t *testing.T) {
	c, err := read(t, "files: /a\nevent: cpu,alloc=512k,libc:write,lock\nevent-match: [shop, {user: app}]\n")
	if err == nil {
		err = c.Check()
	}
	want := []session.AskedEvent{{Name: "alloc", Every: 512 << 10}, {Name: "libc:write"}, {Name: "lock"}}
	if err != nil || !slices.Equal(c.Events, want) || len(c.EventMatch) != 2 || len(c.Choice.Match) != 0 {
		t.Errorf("%+v, %v", c.Settings, err)
	}
	for text, want := range map[string]string{
		"event: alloc,ttsp":                          "ttsp is not recorded beside others",
		"event: alloc,alloc":                         "alloc is there twice",
		"event: cpu=10":                              "rate says how often",
		"event: cpu\nmode: wall":                     "event cpu goes with mode cpu",
		"event: lock\nmode: wall":                    "mode wall has the waits",
		"event: lock=5":                              "its samples are times",
		"event: lock,off-cpu":                        "leave out lock",
		"event-match: [a]":                           "event-match goes with event",
		"event: a:a,b:b,c:c,d:d,e:e,f:f,g:g,h:h,i:i": "no more than 8",
	} {
		c, err := read(t, "files: /a\n"+text+"\n")
		if err == nil {
			err = c.Check()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// Flags go before variables, and these before the file.
func TestSources(t *testing.T) {
	var flags Said
	flags.Add("files", "/a")
	flags.Add("match", "one")
	flags.Add("match", "two")
	said := Environment(func(name string) (string, bool) {
		text, ok := map[string]string{"GOPROF_" + "AGENT_RATE": "49", "GOPROF_" + "AGENT_FILES": "/b",
			"GOPROF_" + "AGENT_MATCH": "three\nfour\nfive\n"}[name]
		return text, ok
	})
	c, err := Load("", said, flags)
	if err != nil || c.Files.Dir != "/a" || c.Rate != 49 || len(c.Choice.Match) != 2 {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err = Load("", said); err != nil || len(c.Choice.Match) != 3 {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := Load(""); err != ErrNowhere {
		t.Errorf("%v", err)
	}
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]int64{"500MB": 500e6, "2 GB": 2e9, "1GiB": 1 << 30, "123": 123, "0.5kB": 500} {
		if n, err := readBytes(text); err != nil || n != want {
			t.Errorf("%s: %d, %v", text, n, err)
		}
	}
	for _, text := range []string{"", "GB", "-1MB", "1e99GB", "nan", "5XB"} {
		if n, err := readBytes(text); err == nil {
			t.Errorf("%q is %d", text, n)
		}
	}
}

// FuzzRead: a file may hold anything.
func FuzzRead(f *testing.F) {
	f.Add("rate: 19\nmatch: [a, {user: b}]\n")
	f.Add("deny:\n- version=^1\n")
	f.Add("a: &a [*a]\n")
	f.Fuzz(func(t *testing.T, text string) {
		c := Default()
		if Read(&c, "f", strings.NewReader(text)) == nil {
			c.Check()
		}
	})
}

// TestDestinations: each server is a destination, and keeps all options that belong to it.
func TestDestinations(t *testing.T) {
	var said Said
	said.Add("otlp", "http://a,grpc://b")
	said.Add("spool-max", "7")
	said.Add("tls-ca", "ca.pem")
	c, err := Load("", said)
	if err != nil || c.To.OTLP != "http://a,grpc://b" || c.To.SpoolMax != 7 || c.To.CA != "ca.pem" {
		t.Errorf("%+v %v", c.To, err)
	}
	for _, bad := range []string{"0", "-1", "x", "1GB"} {
		said := append(said, Said{{"spool-max", bad}}...)
		if _, err := Load("", said); err == nil {
			t.Errorf("spool-max %s is taken", bad)
		}
	}
}

// A server in a second flag does not replace the first one. A server of another source does.
func TestServersOfSeveralFlags(t *testing.T) {
	var before, flags Said
	before.Add("otlp", "http://old")
	flags.Add("otlp", "http://a")
	flags.Add("otlp", "http://b,http://c")
	c, err := Load("", before, flags)
	if want := "http://a,http://b,http://c"; err != nil || c.To.OTLP != want {
		t.Errorf("%q, %v; want %q", c.To.OTLP, err, want)
	}
	for _, name := range []string{"spool", "spool-max", "tls-ca", "relabel", "parca-headers"} {
		alone := Said{{"files", "d"}, {name, "1"}}
		if _, err := Load("", alone); err == nil || !strings.Contains(err.Error(), name+" is for servers") {
			t.Errorf("%s without a server: %v", name, err)
		}
	}
}
