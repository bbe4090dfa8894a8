// Package tools implements the tools of "goprof mcp". Each tool is a command of goprof with a table of its options. A
// call runs the command in another process, without a shell: a client's text becomes the value of a flag, or the name
// of a file in one folder, and nothing else. With a Redactor no answer contains names of the program. Commands that
// look at a JVM get the Redactor's key. Files that this server has not made are redacted before they are read.
package tools

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/mcp"
	"goprof/output"
	"goprof/output/snap"
	"goprof/profile/redact"
)

// Server implements the tools, and keeps the files that they make.
type Server struct {
	goprof string           // the program
	dir    string           // recordings and snaps
	own    string           // a folder for copies without names; removed at the end
	by     *redact.Redactor // nil: names may be shown
	key    string           // the file with the key of by
	made   map[string]bool  // files of this server, which need no redaction
	list   []string         // the same, oldest first
	done   int              // number of recordings and snaps
}

// Open makes a server. goprof is the program that it runs. dir is the folder of recordings; if it is empty, a new
// folder is made, which Close removes. names says that names may be shown. The key of the pseudonyms is made for this
// server.
func Open(goprof, dir string, names bool) (*Server, error) {
	own, err := os.MkdirTemp("", "goprof-mcp-")
	if err != nil {
		return nil, exit.CannotWrite(err)
	}
	m := &Server{goprof: goprof, dir: cmp.Or(dir, own), own: own, made: map[string]bool{}}
	if info, err := os.Stat(m.dir); err != nil || !info.IsDir() {
		m.Close()
		return nil, &exit.Error{Code: exit.BadInput, What: "there is no folder " + dir,
			Remedy: "mkdir " + exit.CommandLine([]string{dir})}
	}
	if names {
		return m, nil
	}
	key := make([]byte, 32)
	rand.Read(key)
	m.by, m.key = redact.New(redact.Default(), key), filepath.Join(own, "key")
	if err := os.WriteFile(m.key, key, 0o600); err != nil {
		m.Close()
		return nil, exit.CannotWrite(err)
	}
	return m, nil
}

// Close deletes the server's own files.
func (m *Server) Close() { os.RemoveAll(m.own) }

// mostMade limits how many recordings are kept. The oldest are deleted.
const mostMade = 20

// Options of several tools.
var (
	optPID = mcp.Option{Name: "pid", Kind: mcp.Integer, Least: 1, Most: 1 << 22,
		What: "process id of the JVM, as list shows it"}
	optFile = mcp.Option{Name: "file", Kind: mcp.Text, What: "name of a snap, as the tool snap gave it, " +
		"in place of pid and of all other arguments"}
	optTop = mcp.Option{Name: "top", Kind: mcp.Integer, Least: 1, Most: 500, What: "rows (30)"}
	optBy  = mcp.Option{Name: "by", Kind: mcp.Text, What: "sum up by what (method)",
		Words: []string{"method", "class", "package", "thread", "state", "kind"}}
	optEvent = mcp.Option{Name: "event", Kind: mcp.Text,
		What: "which samples, of a file with several sorts: cpu, wall, alloc, lock, off-cpu"}
	optFrom = mcp.Option{Name: "from", Kind: mcp.Text, What: "only samples from this time after the start on: 10s"}
	optTo   = mcp.Option{Name: "to", Kind: mcp.Text, What: "only samples before this time after the start: 40s"}
)

func needed(o mcp.Option, name, what string) mcp.Option {
	o.Name, o.What, o.Needed = name, what, true
	return o
}

func optSeconds(least, most, usual int) mcp.Option {
	return mcp.Option{Name: "seconds", Kind: mcp.Integer, Least: least, Most: most,
		What: fmt.Sprintf("how long (%d)", usual)}
}

// within returns a time limit: the seconds of the request, and some more.
func within(usual int, more time.Duration) func(mcp.Args) time.Duration {
	return func(a mcp.Args) time.Duration { return time.Duration(secondsOf(a, usual))*time.Second + more }
}

func secondsOf(a mcp.Args, usual int) int {
	if a.Has("seconds") {
		return a.Int("seconds")
	}
	return usual
}

// Tools are the tools, for one client at a time.
func (m *Server) Tools() []mcp.Tool {
	events := mcp.Option{Name: "of", Kind: mcp.Text,
		Words: []string{"cpu", "wall", "off-cpu", "alloc", "lock", "exceptions"},
		What: "what samples are taken of: CPU time (cpu, the default), all threads (wall), waits (off-cpu, lock), " +
			"allocations, exceptions"}
	return []mcp.Tool{
		{Name: "list", Title: "List JVMs",
			What:  "The JVMs of this host: pid, main class, JDK, collector, uptime, threads, CPU use.",
			Limit: within(0, 30*time.Second), Call: m.listed},
		{Name: "triage", Title: "What is wrong", What: "Looks at a JVM for some seconds and says what is wrong, the " +
			"likeliest first, with evidence. The JVM may hang. Or what was wrong, by a snap.",
			Options: []mcp.Option{optPID, optFile, optSeconds(4, 120, 10)}, Limit: within(10, 90*time.Second),
			Call: m.look("triage", func(a mcp.Args) []string { return []string{"-d", strconv.Itoa(secondsOf(a, 10))} })},
		{Name: "dump", Title: "What threads do", What: "All threads with stacks, states and locks at this moment; " +
			"equal stacks once. With pools: thread pools and their queues instead.",
			Options: []mcp.Option{optPID, optFile,
				{Name: "pools", Kind: mcp.Switch, What: "thread pools, how busy they are, and their queues"},
				{Name: "virtual", Kind: mcp.Switch, What: "also virtual threads that no carrier runs"}},
			Limit: within(0, 2*time.Minute), Call: m.look("dump", func(a mcp.Args) []string {
				args := []string{"--group"}
				if a.On("pools") {
					args = []string{"--pools"}
				}
				if a.On("virtual") {
					args = append(args, "--virtual")
				}
				return args
			})},
		{Name: "locks", Title: "Deadlocks and lock waits",
			What:    "Deadlocks, and which threads wait for whose lock, at this moment.",
			Options: []mcp.Option{optPID, optFile}, Limit: within(0, 2*time.Minute), Call: m.look("locks", nil)},
		{Name: "record", Title: "Take samples", What: "Samples a JVM's stacks for some seconds into a file, and shows " +
			"the methods that cost most. The answer ends with the file's name, for report and diff.",
			Options: []mcp.Option{needed(optPID, "pid", optPID.What), optSeconds(1, 300, 15), events},
			Limit:   within(15, 2*time.Minute), Call: m.record},
		{Name: "report", Title: "Where time goes", What: "A table of a recording: the methods (or classes, threads, " +
			"states ...) that cost most. With changes: from when on shares differ.",
			Options: []mcp.Option{needed(optFile, "file", "name of a recording or a snap"), optBy, optTop, optEvent,
				optFrom, optTo,
				{Name: "thread", Kind: mcp.Text, What: "only threads that this regular expression finds"},
				{Name: "include", Kind: mcp.Text, What: "only stacks with a frame that this regular expression finds"},
				{Name: "changes", Kind: mcp.Switch, What: "the moments from which on shares differ, in place of the table"}},
			Limit: within(0, 3*time.Minute), Call: m.report},
		{Name: "diff", Title: "What changed",
			What: "Compares two recordings, or two times of one, and separates changes from noise.",
			Options: []mcp.Option{needed(optFile, "before", "name of the earlier recording"),
				{Name: "after", Kind: mcp.Text, What: "name of the later one (the same)"}, optBy, optTop, optEvent,
				{Name: "before_time", Kind: mcp.Text, What: "only this time of before: 0s-60s"},
				{Name: "after_time", Kind: mcp.Text, What: "only this time of after: 60s-"}},
			Limit: within(0, 3*time.Minute), Call: m.diff},
		{Name: "heap", Title: "What fills the heap",
			What:    "A histogram of live and dead objects by class, without a stop.",
			Options: []mcp.Option{optPID, optFile, optTop}, Limit: within(0, 3*time.Minute), Call: m.look("heap", topRows)},
		{Name: "snap", Title: "Keep everything", What: "Keeps in one file all that can be seen of a JVM, as before a " +
			"restart. The answer ends with the file's name, which triage, dump, locks, heap and report take.",
			Options: []mcp.Option{needed(optPID, "pid", optPID.What), optSeconds(4, 60, 10)}, Limit: within(10, 3*time.Minute),
			Call: m.snap},
	}
}

func topRows(a mcp.Args) []string {
	if a.Has("top") {
		return []string{"--top", strconv.Itoa(a.Int("top"))}
	}
	return nil
}

// redacted returns the flags that remove names.
func (m *Server) redacted() []string {
	if m.by == nil {
		return nil
	}
	return []string{"--redact", "default", "--redact-key", m.key}
}

// look runs a command that looks at a JVM or at its snap.
func (m *Server) look(command string, flags func(mcp.Args) []string) func(context.Context, mcp.Args) (string, error) {
	return func(ctx context.Context, a mcp.Args) (string, error) {
		args := append([]string{command}, m.redacted()...)
		switch {
		case a.Has("pid") == a.Has("file"):
			return "", fmt.Errorf("%s needs either pid or file", command)
		case a.Has("file") && len(ofLiveOnly(a)) > 0:
			return "", fmt.Errorf("with file, %s takes no %s: a snap holds what was seen when it was made", command,
				strings.Join(ofLiveOnly(a), ", "))
		case a.Has("file"):
			name, err := m.find(a.Text("file"))
			if err == nil && !snap.IsNamed(name) {
				err = fmt.Errorf("%s is no snap", a.Text("file"))
			}
			if err != nil {
				return "", err
			}
			return m.run(ctx, append(args, name))
		}
		args = append(args, "--pid", strconv.Itoa(a.Int("pid")))
		if flags != nil {
			args = append(args, flags(a)...)
		}
		return m.run(ctx, args)
	}
}

// ofLiveOnly returns the arguments that need a live JVM.
func ofLiveOnly(a mcp.Args) (names []string) {
	for name, value := range a {
		if name != "file" && name != "page" && value != false {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (m *Server) record(ctx context.Context, a mcp.Args) (string, error) {
	name := m.next("recording-%d.jfr")
	args := []string{"record", "--pid", strconv.Itoa(a.Int("pid")), "-d", strconv.Itoa(secondsOf(a, 15)) + "s", "-o",
		filepath.Join(m.dir, name)}
	switch of := a.Text("of"); of {
	case "", "cpu":
	case "wall":
		args = append(args, "--mode", of)
	default:
		args = append(args, "--event", of)
	}
	text, err := m.run(ctx, append(args, m.redacted()...))
	if err != nil {
		return "", err
	}
	m.keep(name)
	table, err := m.run(ctx, []string{"report", filepath.Join(m.dir, name), "--top", "20"})
	return text + "\n" + table + "\nfile: " + name + "\n", err
}

func (m *Server) snap(ctx context.Context, a mcp.Args) (string, error) {
	name := m.next("snap-%d.zip")
	text, err := m.run(ctx, append([]string{"snap", "--pid", strconv.Itoa(a.Int("pid")), "-d",
		strconv.Itoa(secondsOf(a, 10)) + "s", "-o", filepath.Join(m.dir, name)}, m.redacted()...))
	if err != nil {
		return "", err
	}
	m.keep(name)
	return text + "\nfile: " + name + "\n", nil
}

func (m *Server) report(ctx context.Context, a mcp.Args) (string, error) {
	name, err := m.readable(ctx, a.Text("file"))
	if err != nil {
		return "", err
	}
	args := []string{"report", name}
	if a.On("changes") {
		args = []string{"heat", "--text", name}
	} else {
		args = append(append(args, topRows(a)...), flagged(a, "by")...)
	}
	return m.run(ctx, append(args, flagged(a, "event", "from", "to", "thread", "include")...))
}

func (m *Server) diff(ctx context.Context, a mcp.Args) (string, error) {
	before, err := m.readable(ctx, a.Text("before"))
	after := before
	if err == nil && a.Has("after") {
		after, err = m.readable(ctx, a.Text("after"))
	}
	if err != nil {
		return "", err
	}
	args := append([]string{"diff", before, after}, append(topRows(a), flagged(a, "by", "event")...)...)
	for _, side := range []string{"before", "after"} {
		if a.Has(side + "_time") {
			args = append(args, "--"+side+"="+a.Text(side+"_time"))
		}
	}
	return m.run(ctx, args)
}

// flagged converts arguments to flags of the same names. A client's text is always the value of a flag, never a
// separate word of the command line.
func flagged(a mcp.Args, names ...string) (flags []string) {
	for _, name := range names {
		if a.Has(name) {
			flags = append(flags, "--"+name+"="+a.Text(name))
		}
	}
	return flags
}

// listedKeys are the fields of a listed JVM that cannot contain names.
var listedKeys = []string{"pid", "version", "vendor", "collector", "uptime_seconds", "threads", "cpu_seconds",
	"cpu_percent"}

// listed returns the list of JVMs. A redacted list contains only facts that cannot be names.
func (m *Server) listed(ctx context.Context, _ mcp.Args) (string, error) {
	text, err := m.run(ctx, []string{"list", "--json"})
	if err != nil || m.by == nil {
		return text, err
	}
	var all struct {
		JVMs []map[string]any `json:"jvms"`
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return "", errors.New("the list cannot be read")
	}
	for i, jvm := range all.JVMs {
		kept := map[string]any{}
		for _, name := range listedKeys {
			if v, ok := jvm[name]; ok {
				kept[name] = v
			}
		}
		if main, ok := jvm["main"].(string); ok {
			kept["main"] = m.by.Program(main)
		}
		all.JVMs[i] = kept
	}
	b, err := json.MarshalIndent(all, "", "  ")
	return string(b) + "\n", err
}

// next returns a name for a new file.
func (m *Server) next(form string) string {
	for {
		m.done++
		name := fmt.Sprintf(form, m.done)
		if _, err := os.Lstat(filepath.Join(m.dir, name)); err != nil {
			return name
		}
	}
}

// keep notes a new file, and deletes the oldest if there are too many.
func (m *Server) keep(name string) {
	m.made[name] = true
	m.list = append(m.list, name)
	if len(m.list) > mostMade {
		os.Remove(filepath.Join(m.dir, m.list[0]))
		delete(m.made, m.list[0])
		m.list = m.list[1:]
	}
}

// find returns the path of a file. It accepts only names of files in the folder.
func (m *Server) find(name string) (string, error) {
	path := filepath.Join(m.dir, name)
	info, err := os.Stat(path)
	if name == "" || name != filepath.Base(name) || strings.ContainsAny(name[:1], ".-") || err != nil ||
		!info.Mode().IsRegular() {
		return "", fmt.Errorf("there is no file %q: record and snap make files; they give the name", output.Printable(name))
	}
	return path, nil
}

// readable returns the path of a recording that the client may see. If names are to be hidden, it redacts a copy of any
// file that this server has not made.
func (m *Server) readable(ctx context.Context, name string) (string, error) {
	path, err := m.find(name)
	if err != nil || m.by == nil || m.made[name] {
		return path, err
	}
	copied := filepath.Join(m.own, name)
	if snap.IsNamed(path) { // redact cannot read a zip file
		copied += ".jfr"
		_, err = m.run(ctx, append([]string{"convert", path, "-o", copied}, m.redacted()...))
		return copied, err
	}
	_, err = m.run(ctx, []string{"redact", path, "-o", copied, "--key", m.key, "--quiet"})
	return copied, err
}
