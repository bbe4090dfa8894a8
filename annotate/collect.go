// Package annotate shows where the samples of one method are: on its source lines, its bytecodes, and the machine code
// that a compiler made of it.
//
// A Collector takes stacks. It finds the method that a user names, by a part of its name, and returns it as a Page.
// Package machine adds the facts that only the JVM knows. Package annotate adds the source text, and writes text and
// JSON. Names, lines and bytecode indices come from a target or a file, and are not trusted.
package annotate

import (
	"cmp"
	"sort"
	"strings"

	"goprof/profile"
	"goprof/profile/naming"
)

// Count is the number of samples at a place, in the unit of the page.
type Count struct {
	Self  int64 `json:"self"`  // at the top of the stack, or in native code that was called there
	Total int64 `json:"total"` // anywhere on the stack; each sample counts once
	// Likely and Guessed are the parts of Self whose place is inferred.
	Likely  int64 `json:"likely,omitempty"`
	Guessed int64 `json:"guessed,omitempty"`
}

// Add adds n to Self. sure is the certainty of the place.
func (c *Count) Add(n int64, sure profile.Certainty) {
	c.Self += n
	switch sure {
	case profile.Likely:
		c.Likely += n
	case profile.Guessed:
		c.Guessed += n
	}
}

// Sum adds another Count.
func (c *Count) Sum(o *Count) {
	c.Self, c.Total, c.Likely, c.Guessed = c.Self+o.Self, c.Total+o.Total, c.Likely+o.Likely, c.Guessed+o.Guessed
}

// Limits of what a Collector keeps. Samples beyond these limits count for the method, but not for a place in it.
const (
	maxMethods = 1 << 14
	maxPlaces  = 1 << 17 // of a method. A method may have 65,535 bytecodes, and overloads
	maxOwners  = 1 << 10 // of a method
)

// Collector gathers the samples of all methods that a name can mean.
type Collector struct {
	All     int64 // number of all samples
	Waiting bool  // the thread of the next sample waits
	// LinesAlone says that frames have lines but no bytecode indices, as in pprof files. In other files, a frame
	// without an index may be anywhere in its method, and its line is the method's first line.
	LinesAlone bool
	Unnamed    int64 // samples that count for the compiled method, because the methods inlined into it are guesses
	want       string
	methods    map[string]*found // by name
	known      map[*profile.Func]*found
	met        uint64 // the number of the last added stack
}

// found holds the samples of one method.
type found struct {
	Count
	name, file string
	met        uint64
	places     map[place]*placed
	lines      map[int32]*placed
	inside     map[string]*Count // by the compiled method that contains the inlined method
}

type place struct{ bci, line int32 }

type placed struct {
	Count
	met uint64
}

// New makes a Collector for a method's name or a part of it: Class.method, Class::method, Class#method(int).
func New(name string) *Collector {
	name, _, _ = strings.Cut(name, "(")
	name = strings.NewReplacer("::", ".", "#", ".", "/", ".").Replace(name)
	return &Collector{want: name, methods: map[string]*found{}, known: map[*profile.Func]*found{}}
}

// Wants reports whether a user can mean the method with this name.
func (c *Collector) Wants(name string) bool { return strings.Contains(name, c.want) }

// of returns the samples of a function, or nil if the function is not wanted.
func (c *Collector) of(fn *profile.Func) *found {
	m, met := c.known[fn]
	if met || fn == nil {
		return m
	}
	if len(c.known) >= 1<<18 {
		clear(c.known)
	}
	if c.Wants(fn.Name) {
		if m = c.methods[fn.Name]; m == nil && len(c.methods) < maxMethods {
			m = &found{name: fn.Name, file: fn.File, places: map[place]*placed{}, lines: map[int32]*placed{},
				inside: map[string]*Count{}}
			c.methods[fn.Name] = m
		}
	}
	c.known[fn] = m
	return m
}

// Add adds a stack n times.
func (c *Collector) Add(s *profile.Stack, n int64) {
	c.All += n
	c.met++
	top := Top(s, c.Waiting)
	for i := range s.Frames {
		f := &s.Frames[i]
		if !f.Kind.Java() {
			continue
		}
		m := c.of(f.Func)
		if m == nil {
			continue
		}
		sure := s.Frames[0].Sure
		if interrupted(s, i) {
			sure = max(sure, profile.Likely)
		}
		of := owner(s, i)
		in := m.inside[of]
		if in == nil {
			if in = new(Count); len(m.inside) < maxOwners {
				m.inside[of] = in
			}
		}
		line := f.Line
		if f.BCI < 0 && !c.LinesAlone {
			line = 0
		}
		at := [...]*placed{keep(m.places, place{f.BCI, line}), keep(m.lines, line)}
		if i == top {
			m.Count.Add(n, sure)
			in.Add(n, sure)
		}
		if m.met != c.met {
			m.met, m.Total, in.Total = c.met, m.Total+n, in.Total+n
		}
		for _, p := range at {
			if i == top {
				p.Add(n, sure)
			}
			if p.met != c.met {
				p.met, p.Total = c.met, p.Total+n
			}
		}
	}
}

// keep returns the counts of a place. If the table is full, it returns new counts that are not kept.
func keep[K comparable](in map[K]*placed, at K) *placed {
	p := in[at]
	if p == nil {
		p = new(placed)
		if len(in) < maxPlaces {
			in[at] = p
		}
	}
	return p
}

// interrupted reports whether a frame is compiled code that was interrupted outside of a call. A JVM has lines of
// compiled code only for calls and safepoints. So the line of this frame is the line of the nearest of these.
func interrupted(s *profile.Stack, i int) bool {
	for k := 0; k < i; k++ {
		if s.Frames[k].Kind != profile.Inlined {
			return false
		}
	}
	return s.Frames[i].Kind == profile.Inlined || s.Frames[i].Kind == profile.C1 || s.Frames[i].Kind == profile.C2
}

// owner returns the compiled method whose code a frame runs, or "" if the frame is not compiled.
func owner(s *profile.Stack, i int) string {
	for ; i < len(s.Frames); i++ {
		switch f := &s.Frames[i]; f.Kind {
		case profile.C1, profile.C2:
			return f.Func.Name
		case profile.Inlined:
		default:
			return ""
		}
	}
	return ""
}

// Top returns the index of the Java frame that a sample counts for, as in "report --by line": the topmost Java frame.
// If the thread waits, it is the topmost Java frame that is not in a waiting function (naming.Waits). Top returns -1 if
// there is no such frame.
func Top(s *profile.Stack, waits bool) int {
	first := -1
	for i := range s.Frames {
		f := &s.Frames[i]
		if f.Kind.Java() && f.Func != nil {
			if !waits || !naming.Waits(f.Func.Name) {
				return i
			}
			if first < 0 {
				first = i
			}
		}
	}
	return first
}

// Candidate is a method that a name can mean.
type Candidate struct {
	Name string `json:"method"`
	Count
}

// Candidates returns the methods that the name can mean: those with exactly this name, or else those whose name ends
// with it, or else those whose name contains it. The methods with the most samples come first.
func (c *Collector) Candidates() (list []Candidate) {
	best := 0
	for name, m := range c.methods {
		fits := 1
		switch {
		case name == c.want:
			fits = 3
		case strings.HasSuffix(name, "."+c.want):
			fits = 2
		}
		if fits > best {
			best, list = fits, list[:0]
		}
		if fits == best {
			list = append(list, Candidate{name, m.Count})
		}
	}
	sort.Slice(list, func(i, j int) bool {
		a, b := &list[i], &list[j]
		return cmp.Or(cmp.Compare(b.Self, a.Self), cmp.Compare(b.Total, a.Total), strings.Compare(a.Name, b.Name)) < 0
	})
	return list
}

// Page returns the samples of the method with this name.
func (c *Collector) Page(name string) *Page {
	m := c.methods[name]
	if m == nil {
		return nil
	}
	p := &Page{Method: m.name, File: m.file, All: c.All, Count: m.Count, Code: []Code{}}
	all := Method{Rows: []Row{}, Lines: []Line{}}
	for at, count := range m.places {
		all.Rows = append(all.Rows, Row{BCI: at.bci, Line: at.line, Count: count.Count})
	}
	for line, count := range m.lines {
		all.Lines = append(all.Lines, Line{Line: line, Count: count.Count})
	}
	sort.Slice(all.Rows, func(i, j int) bool {
		a, b := &all.Rows[i], &all.Rows[j]
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.BCI, b.BCI)) < 0
	})
	sort.Slice(all.Lines, func(i, j int) bool { return all.Lines[i].Line < all.Lines[j].Line })
	p.Methods = []Method{all}
	for owner, count := range m.inside {
		p.Inside = append(p.Inside, Candidate{owner, *count})
	}
	sort.Slice(p.Inside, func(i, j int) bool {
		a, b := &p.Inside[i], &p.Inside[j]
		return cmp.Or(cmp.Compare(b.Self, a.Self), cmp.Compare(b.Total, a.Total), strings.Compare(a.Name, b.Name)) < 0
	})
	return p
}
