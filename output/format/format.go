// Package format finds the format that a file's name asks for.
package format

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Format is a file format that goprof writes.
type Format uint8

const (
	Collapsed  Format = iota // lines "root;caller;leaf count"
	HTML                     // a flame graph as a page
	SVG                      // a flame graph as a picture
	JFR                      // JDK Flight Recorder
	PProf                    // profile.proto, gzip
	Speedscope               // JSON of speedscope.app
	Firefox                  // the Firefox Profiler's processed profile, gzip
	JSON                     // the table of methods

	numFormats = int(iota)
)

var table = [numFormats]struct {
	name   string   // for -f
	ends   []string // extensions of its files, the usual one first
	about  string
	viewer string // a program that shows such files; empty: goprof itself or none
	read   bool   // goprof can read it
	parts  bool   // see Parts
	mute   bool   // see Mute
}{
	Collapsed: {"collapsed", []string{".collapsed", ".txt"}, "stacks with counts, for all flame graph tools",
		"", true, false, false},
	HTML: {"html", []string{".html"}, "a flame graph, one page that needs no network", browser, false, false, false},
	SVG:  {"svg", []string{".svg"}, "a flame graph, a picture without scripts", browser, false, false, false},
	JFR:  {"jfr", []string{".jfr"}, "JDK Flight Recorder: JMC, IntelliJ, jfr", "", true, true, false},

	PProf:      {"pprof", []string{".pb.gz", ".pprof"}, "pprof", "", true, true, true},
	Speedscope: {"speedscope", []string{".speedscope.json"}, "speedscope", "speedscope", false, true, true},
	Firefox: {"firefox", []string{".firefox.json.gz"}, "Firefox Profiler", "the Firefox Profiler", false, true,
		true},
	JSON: {"json", []string{".json"}, "the table of methods, for scripts", "", false, false, false},
}

const browser = "a browser"

// String returns the format's name, as Named takes it.
func (f Format) String() string {
	if int(f) < numFormats {
		return table[f].name
	}
	return "unknown"
}

// Extension returns the usual extension of its files.
func (f Format) Extension() string {
	if int(f) < numFormats {
		return table[f].ends[0]
	}
	return ""
}

// About describes in a few words what the format is for.
func (f Format) About() string {
	if int(f) < numFormats {
		return table[f].about
	}
	return ""
}

// Parts reports whether a file of the format holds single samples, and can hold several kinds of them: CPU time, waits,
// allocations. Other formats hold sums.
func (f Format) Parts() bool { return table[f].parts }

// Mute reports whether a file of the format cannot show which leaves are guesses.
func (f Format) Mute() bool { return table[f].mute }

// Drawn reports whether the format is a page or a picture of a flame graph.
func (f Format) Drawn() bool { return table[f].viewer == browser }

// Viewer returns the program that shows files of the format. It is empty if goprof shows them, or if there is no
// viewer.
func (f Format) Viewer() string { return table[f].viewer }

// Read reports whether goprof can read files of the format.
func (f Format) Read() bool { return table[f].read }

func All() []Format {
	all := make([]Format, numFormats)
	for f := range all {
		all[f] = Format(f)
	}
	return all
}

func Names() (names []string) {
	for _, f := range All() {
		names = append(names, f.String())
	}
	return names
}

// Extensions returns all file name extensions of formats.
func Extensions() (ends []string) {
	for _, f := range All() {
		ends = append(ends, table[f].ends...)
	}
	return ends
}

// Unknown is the error for a name of no format. Its text lists the formats.
type Unknown struct {
	Name  string // of the format, or the file's extension
	Named bool   // Name was given with -f
}

func (e *Unknown) Error() string {
	if e.Named {
		return fmt.Sprintf("there is no format %q; there are %s", e.Name, strings.Join(Names(), ", "))
	}
	return fmt.Sprintf("no format has the extension %q; there are %s", e.Name, strings.Join(Extensions(), " "))
}

// Named returns the format for an argument of -f: a format's name, or an extension with or without its dot.
func Named(name string) (Format, error) {
	lower := strings.ToLower(name)
	for _, f := range All() {
		if f.String() == lower {
			return f, nil
		}
		for _, end := range table[f].ends {
			if end == lower || end[1:] == lower {
				return f, nil
			}
		}
	}
	return Collapsed, &Unknown{Name: name, Named: true}
}

// Of returns the format for a file: named, if that is not empty, otherwise the format of the file name's extension. The
// longest extension counts: x.speedscope.json is not a table of methods. Standard output ("-"), and names without any
// extension (/dev/fd/3), are collapsed. Case does not matter.
func Of(file, named string) (Format, error) {
	if named != "" {
		return Named(named)
	}
	base := filepath.Base(file)
	if f, _, ok := longest(base); ok {
		return f, nil
	}
	if ext := filepath.Ext(base); ext != "" {
		return Collapsed, &Unknown{Name: ext}
	}
	return Collapsed, nil
}

// Trim removes the extension of a file's format: out.speedscope.json becomes out. From files of unknown formats it
// removes what filepath.Ext returns.
func Trim(file string) string {
	if _, end, ok := longest(file); ok {
		return file[:len(file)-len(end)]
	}
	return strings.TrimSuffix(file, filepath.Ext(file))
}

func longest(name string) (of Format, end string, ok bool) {
	lower := strings.ToLower(name)
	for _, f := range All() {
		for _, e := range table[f].ends {
			if len(e) > len(end) && strings.HasSuffix(lower, e) {
				of, end, ok = f, e, true
			}
		}
	}
	return of, end, ok
}
