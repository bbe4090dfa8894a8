// Package pages shows recordings over HTTP: a list, and for each recording its drawings, its tables, and downloads in
// other formats. A page is made on request, by a command of goprof, one page at a time. Only files of one folder that
// look like recordings are read. Links are not followed, except one that the user names. Pages load nothing from
// elsewhere. The caller decides who may send requests.
package pages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"

	"goprof/cmd/goprof/exit"
	"goprof/output"
)

// Shelf holds the recordings that may be shown.
type Shelf struct {
	dir  string
	only string // the only file; empty: all files of dir
}

// mostServed limits how many recordings are listed, the newest first.
const mostServed = 1000

var recordingEnds = []string{".collapsed", ".folded", ".txt", ".jfr", ".pb.gz", ".pb", ".pprof"}

// Open opens a file or a folder. A link that the user names is followed once.
func Open(name string) (*Shelf, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return &Shelf{dir: name}, nil
	case !info.Mode().IsRegular():
		return nil, errors.New("it is neither a file nor a folder")
	}
	path, err := filepath.EvalSymlinks(name)
	if err != nil {
		return nil, err
	}
	return &Shelf{filepath.Dir(path), filepath.Base(path)}, nil
}

// list returns the present recordings, the newest first.
func (s *Shelf) list() (files []fs.FileInfo) {
	entries, _ := os.ReadDir(s.dir)
	for _, e := range entries {
		fits := func(end string) bool { return strings.HasSuffix(e.Name(), end) }
		if s.only != e.Name() && (s.only != "" || !slices.ContainsFunc(recordingEnds, fits)) {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
		}
	}
	sort.Slice(files, func(i, j int) bool { return files[j].ModTime().Before(files[i].ModTime()) })
	return files[:min(len(files), mostServed)]
}

// Paths returns the paths of the present recordings.
func (s *Shelf) Paths() (paths []string) {
	for _, f := range s.list() {
		paths = append(paths, filepath.Join(s.dir, f.Name()))
	}
	return paths
}

// find returns the path of a listed recording. It rejects any other name.
func (s *Shelf) find(name string) (path string, ok bool) {
	ok = slices.ContainsFunc(s.list(), func(f fs.FileInfo) bool { return f.Name() == name })
	return filepath.Join(s.dir, name), ok
}

// view is a way to show a recording: a command, and the file that it writes.
type view struct {
	name, end string // of the link, and of the file
	args      []string
	times     bool // only for recordings with times
	download  bool
	part      string // of the recording; empty: the default part
}

var views = []view{
	{name: "flame", end: ".html", args: []string{"flame"}},
	{name: "heat", end: ".html", args: []string{"heat"}, times: true},
	{name: "methods", end: ".txt", args: []string{"report"}},
	{name: "classes", end: ".txt", args: []string{"report", "--by", "class"}},
	{name: "threads", end: ".txt", args: []string{"report", "--by", "thread"}},
	{name: "speedscope", end: ".speedscope.json", args: []string{"convert"}, download: true},
	{name: "firefox", end: ".firefox.json.gz", args: []string{"convert"}, times: true, download: true},
	{name: "pprof", end: ".pb.gz", args: []string{"convert"}, download: true},
}

// Command runs a command of goprof that writes a file (--output), and returns the command's messages.
type Command func(args ...string) (said string, err error)

// Handler serves the pages of a shelf. It makes them in the folder scratch.
func (s *Shelf) Handler(scratch string, run Command) http.Handler {
	return &handler{Shelf: s, scratch: scratch, run: run}
}

// handler makes one page at a time, because a large recording takes much memory.
type handler struct {
	*Shelf
	scratch string
	run     Command
	making  sync.Mutex
	said    notes
	parts   partsOf
}

// notes are goprof's messages from drawing, by view and file. Drawings have no room for them.
type notes struct {
	mu sync.Mutex
	of map[[2]string]string
}

func (n *notes) set(view, file, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of == nil || len(n.of) >= mostServed {
		n.of = map[[2]string]string{}
	}
	n.of[[2]string{view, file}] = text
}

func (n *notes) get(view, file string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.of[[2]string{view, file}]
}

func (p *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet {
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
		return
	}
	if r.URL.Path == "" {
		p.index(w)
		return
	}
	at := slices.IndexFunc(views, func(v view) bool { return v.name == r.URL.Path })
	path, found := p.find(r.URL.Query().Get("file"))
	part := r.URL.Query().Get("part")
	if at < 0 || !found || part != "" && (views[at].download || !slices.Contains(p.parts.read(path), part)) {
		http.NotFound(w, r)
		return
	}
	v := views[at]
	if part != "" {
		v.args, v.part = append(slices.Clone(v.args), "--event", part), part
	}
	p.show(w, r, &v, path)
}

func (p *handler) show(w http.ResponseWriter, r *http.Request, v *view, path string) {
	p.parts.read(path)
	file, said, err := p.make(r.Context(), v, path)
	if err != nil {
		http.Error(w, said+problemText(err), http.StatusUnprocessableEntity)
		return
	}
	defer file.Close()
	kind := "application/octet-stream"
	switch {
	case v.download:
		name := url.PathEscape(filepath.Base(path) + v.end)
		w.Header().Set("Content-Disposition", "attachment; filename*=UTF-8''"+name)
	case v.end == ".html":
		kind = "text/html; charset=utf-8" // the page itself forbids loading anything
	default:
		kind = "text/plain; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	if v.end == ".txt" {
		io.WriteString(w, said+strings.Repeat("\n", min(len(said), 1)))
	} else if v.part == "" {
		p.said.set(v.name, filepath.Base(path), said)
	}
	io.Copy(w, file)
}

// make makes a page, and returns it with goprof's messages about the recording. The file has no name any more, so
// others can be made while a slow client reads it.
func (p *handler) make(ctx context.Context, v *view, path string) (file *os.File, said string, err error) {
	p.making.Lock()
	defer p.making.Unlock()
	if ctx.Err() != nil {
		return nil, "", ctx.Err() // the client has gone
	}
	made := filepath.Join(p.scratch, "page"+v.end)
	defer os.Remove(made)
	said, err = p.run(append(slices.Clone(v.args), "--output", made, "--", path)...)
	said = p.ofRecording(said)
	if err == nil {
		file, err = os.Open(made)
	}
	return file, said, err
}

// ofRecording removes lines about the place of the page.
func (p *handler) ofRecording(said string) (rest string) {
	for line := range strings.Lines(said) {
		if !strings.Contains(line, filepath.Base(p.scratch)) {
			rest += line
		}
	}
	return rest
}

// problemText returns an error with its remedy, as on a terminal.
func problemText(err error) string {
	var b strings.Builder
	exit.Tell(&b, err)
	return b.String()
}

func (p *handler) index(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "+
		"form-action 'none'")
	var b strings.Builder
	b.WriteString(`<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta name="color-scheme" content="light dark">` +
		`<title>goprof</title><style>body{font:14px system-ui,sans-serif;margin:2em}td,th{padding:.2em 1em .2em 0;` +
		`text-align:left}</style><h1>Recordings</h1><table><tr><th>file<th>written<th>size<th>look<th>load` + "\n")
	files := p.list()
	for _, f := range files {
		fmt.Fprintf(&b, "<tr><td>%s<td>%s<td>%s", output.EscapeHTML(output.Printable(f.Name())),
			f.ModTime().Format("2006-01-02 15:04:05"), output.Size(uint64(f.Size())))
		for _, download := range []bool{false, true} {
			b.WriteString("<td>")
			for i := range views {
				if v := &views[i]; v.download == download && (!v.times || strings.HasSuffix(f.Name(), ".jfr")) {
					fmt.Fprintf(&b, `<a href="%s?file=%s">%[1]s</a> `, v.name, url.QueryEscape(f.Name()))
				}
			}
		}
		b.WriteByte('\n')
		for _, part := range p.parts.listed(filepath.Join(p.dir, f.Name()), f) {
			fmt.Fprintf(&b, "<tr><td colspan=3>&emsp;%s<td>", output.EscapeHTML(output.Printable(part)))
			for i := range views {
				if v := &views[i]; !v.download && (!v.times || strings.HasSuffix(f.Name(), ".jfr")) {
					fmt.Fprintf(&b, `<a href="%s?file=%s&amp;part=%s">%[1]s</a> `, v.name, url.QueryEscape(f.Name()),
						url.QueryEscape(part))
				}
			}
			b.WriteString("<td>\n")
		}
		for i := range views {
			if said := p.said.get(views[i].name, f.Name()); said != "" {
				fmt.Fprintf(&b, "<tr><td colspan=5>%s<pre>%s</pre>\n", views[i].name, output.EscapeHTML(said))
			}
		}
	}
	b.WriteString("</table>")
	if len(files) == 0 {
		b.WriteString("<p>There is none yet: goprof record --pid PID -d 30s -o out.jfr")
	}
	b.WriteString("<p>speedscope files are for www.speedscope.app, firefox files for profiler.firefox.com: both read " +
		"them in the browser.</html>\n")
	io.WriteString(w, b.String())
}
