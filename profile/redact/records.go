package redact

import (
	"slices"
	"strings"

	"goprof/profile"
)

// Meta redacts the origin of a recording. It removes the host, and keeps the number of the process.
func (r *Redactor) Meta(m profile.Meta) profile.Meta {
	m.Host = r.host(m.Host)
	m.MainClass = r.Program(m.MainClass)
	m.JVM = r.Version(m.JVM)
	m.Version, m.Collector, m.Mode, m.Engine = r.Version(m.Version), r.Text(m.Collector), r.Text(m.Mode),
		r.Text(m.Engine)
	m.Part = r.Text(m.Part)
	return m
}

func (r *Redactor) host(name string) string {
	if name == "" {
		return ""
	}
	return r.hash.of(kindWord, name)
}

// Program redacts a main class, or the path of a jar.
func (r *Redactor) Program(name string) string {
	end := len(name)
	for i, c := range name {
		if c == ' ' { // an argument follows, and no argument stays
			end = i
			break
		}
	}
	name = name[:end]
	if isFile(name) {
		return r.Path(name)
	}
	return r.Class(name)
}

func isFile(name string) bool {
	if len(name) > 4 {
		switch name[len(name)-4:] {
		case ".jar", ".war", ".jmod":
			return true
		}
	}
	return strings.ContainsAny(name, `/\`)
}

// Version redacts the text of a JVM's version: numbers and well-known words stay.
func (r *Redactor) Version(text string) string {
	return each(text, func(word string, _ int) string {
		if isRelease(word) || r.allowed(word, versionWords) {
			return word
		}
		return r.hash.of(kindWord, word)
	})
}

// maxVersionWord bounds a word with a digit in a version: 20260115T1200.
const maxVersionWord = 13

// isRelease reports whether a word consists of digits and only such letters as versions have: 0_412, b08, 1deb12u1.
func isRelease(word string) bool {
	if len(word) > maxVersionWord || !isASCII(word) || !strings.ContainsAny(word, "0123456789") {
		return false
	}
	letters := strings.FieldsFunc(word, func(c rune) bool { return c == '_' || c >= '0' && c <= '9' })
	for _, l := range letters {
		if len(l) > 1 && !releaseLetters[strings.ToLower(l)] {
			return false
		}
	}
	return len(letters) <= 2
}

var releaseLetters = setOf(`deb ubuntu el fc amzn bpo jdk jre ga ea rc beta jvmci sapmachine ms gz alpine lts hz mhz ghz`)

func isASCII(word string) bool {
	return !slices.ContainsFunc([]byte(word), func(c byte) bool { return c >= 0x80 || c < ' ' })
}

var versionWords = setOf(`OpenJDK Java HotSpot TM Server Client VM Bit mixed mode sharing Eclipse Adoptium Temurin Oracle
	Corporation Azul Systems Inc Zulu Amazon Corretto Red Hat Debian Ubuntu Alpine SAP SapMachine SE BellSoft Liberica
	Microsoft IBM Semeru GraalVM CE EE LTS ea internal fastdebug slowdebug release build built on with gcc clang for
	linux amd64 aarch64 arm64 x86 x64 ga jdk jre
	JRE JDK Runtime Environment Android Alibaba Dragonwell Tencent Kona Huawei
	BiSheng Loongson JetBrains s r o jcef DCEVM adhoc buildd Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec vs
	tiered compressed oops class ptrs gc parallel serial shenandoah`)

// Sample redacts a sample. The result only shares numbers with the given sample.
func (r *Redactor) Sample(s *profile.Sample, f *Functions) profile.Sample {
	out := *s
	out.Unread = nil // it would read the original names
	out.Thread = f.thread(s.Thread)
	out.Link, out.WakerLink = profile.Link{}, profile.Link{} // with it, a customer's traces could be found

	if s.IO != nil {
		call := *s.IO
		call.Target = profile.IOTarget{Kind: call.Target.Kind, Name: r.Target(call.Target.Name)}
		out.IO = &call
	}
	if s.Event != nil { // the event may be named after a function of the program
		out.Event = &profile.EventKind{Name: r.Text(s.Event.Name), Unit: s.Event.Unit}
	}
	if s.Stack != nil {
		stack := *s.Stack
		stack.Virtual.Name = r.ThreadName(stack.Virtual.Name)
		f.frames = append(f.frames[:0], s.Stack.Frames...)
		for i := range f.frames {
			f.frames[i].Func = f.Of(f.frames[i].Func)
		}
		stack.Frames = f.frames
		f.stack = stack
		out.Stack = &f.stack
	}
	return out
}

// Functions caches the redacted functions and threads: the same function always gives the same pointer.
type Functions struct {
	r       *Redactor
	known   map[*profile.Func]*profile.Func
	threads map[profile.Thread]profile.Thread
	frames  []profile.Frame
	stack   profile.Stack
}

func (r *Redactor) Functions() *Functions {
	return &Functions{r: r, known: make(map[*profile.Func]*profile.Func),
		threads: make(map[profile.Thread]profile.Thread)}
}

// Of returns a function without its names.
func (f *Functions) Of(fn *profile.Func) *profile.Func {
	if fn == nil {
		return nil
	}
	return profile.Cached(f.known, maxKept, fn, func() *profile.Func {
		return new(f.r.Func(*fn))
	})
}

func (f *Functions) thread(t profile.Thread) profile.Thread {
	return profile.Cached(f.threads, maxKept, t, func() profile.Thread { return f.r.Thread(t) })
}

func (r *Redactor) Summary(s *profile.Summary) *profile.Summary {
	if s == nil {
		return nil
	}
	out := *s
	out.Meta, out.Of = r.Meta(s.Meta), "" // the file may be passed on under another name
	out.Notes = r.Notes(s.Notes)
	out.Doubts, out.Cures = r.texts(s.Doubts), r.texts(s.Cures)
	out.Hottest, out.States = r.parts(s.Hottest), r.parts(s.States)
	out.Events = slices.Clone(s.Events)
	for i := range out.Events {
		out.Events[i].Name = r.Text(out.Events[i].Name)
	}
	if s.Allocated != nil {
		a := *s.Allocated
		a.Threads = slices.Clone(a.Threads)
		for i := range a.Threads {
			a.Threads[i].Thread = r.Label(a.Threads[i].Thread)
		}
		out.Allocated = &a
	}
	if s.IO != nil {
		io := *s.IO
		io.Sums, io.Notes = slices.Clone(io.Sums), r.texts(io.Notes)
		for i := range io.Sums {
			io.Sums[i].Target = r.Target(io.Sums[i].Target)
		}
		out.IO = &io
	}
	out.Parts = nil
	for i := range s.Parts {
		out.Parts = append(out.Parts, *r.Summary(&s.Parts[i]))
	}
	if s.Safepoints != nil {
		p := *s.Safepoints
		p.Operations = make(map[string]int64, len(s.Safepoints.Operations))
		for name, n := range s.Safepoints.Operations {
			p.Operations[r.JVMText(name)] += n
		}
		out.Safepoints = &p
	}
	return &out
}

func (r *Redactor) Notes(all []profile.Note) []profile.Note {
	out := make([]profile.Note, len(all))
	for i, n := range all {
		out[i] = profile.Note{Name: r.Text(n.Name), Text: r.Text(n.Text), Remedy: r.Text(n.Remedy)}
	}
	return out
}

func (r *Redactor) texts(all []string) []string {
	out := slices.Clone(all)
	for i, text := range out {
		out[i] = r.Text(text)
	}
	return out
}

func (r *Redactor) parts(all []profile.Part) []profile.Part {
	out := slices.Clone(all)
	for i := range out {
		out[i].Name = r.Label(out[i].Name)
	}
	return out
}

// Dump redacts a dump in place.
func (r *Redactor) Dump(d *profile.Dump) {
	f := r.Functions()
	d.Core = r.core(d.Core)
	d.MainClass, d.VM, d.Version = r.Program(d.MainClass), r.Version(d.VM), r.Version(d.Version)
	d.Frozen, d.Thaw = r.Text(d.Frozen), r.Text(d.Thaw)
	for i := range d.Threads {
		r.dumped(&d.Threads[i], f)
	}
	if d.Virtual != nil {
		census := *d.Virtual
		census.Unread = make(map[string]int, len(d.Virtual.Unread))
		for why, n := range d.Virtual.Unread {
			census.Unread[r.Text(why)] += n
		}
		d.Virtual = &census
	}
	r.pools(d.Pools)
	for _, cycle := range d.Deadlocks {
		for i := range cycle {
			cycle[i].Name = r.ThreadName(cycle[i].Name)
		}
	}
}

// pools redacts classes of executors and tasks, and names of pools of connections.
func (r *Redactor) pools(p *profile.Pools) {
	if p == nil {
		return
	}
	p.Err = r.Text(p.Err)
	for i := range p.Executors {
		e := &p.Executors[i]
		e.Class, e.Next = r.Class(e.Class), r.Class(e.Next)
	}
	for i := range p.Connections {
		p.Connections[i].Name = r.ThreadName(p.Connections[i].Name)
	}
}

// core redacts the facts of a core file except its threads. Bytes of code stay.
func (r *Redactor) core(c *profile.Core) *profile.Core {
	if c == nil {
		return nil
	}
	out := *c
	out.File, out.Collector, out.Died.Name = r.Path(c.File), r.Text(c.Collector), r.ThreadName(c.Died.Name)
	out.Missing = slices.Clone(c.Missing)
	for i := range out.Missing {
		m := &out.Missing[i]
		m.Path, m.BuildID, m.Why = r.Path(m.Path), r.Build(m.BuildID), r.Text(m.Why)
	}
	out.Unproven = slices.Clone(c.Unproven)
	for i := range out.Unproven {
		out.Unproven[i].Path = r.Path(out.Unproven[i].Path)
	}
	out.Signal, out.Cause = r.signal(c.Signal), r.signal(c.Cause)
	return &out
}

func (r *Redactor) signal(s *profile.Signal) *profile.Signal {
	if s == nil {
		return nil
	}
	out := *s
	out.Where = r.Where(s.Where)
	return &out
}

// Where redacts the place of an address: a file, or words.
func (r *Redactor) Where(text string) string {
	if r.library(text) || isFile(text) || strings.Contains(text, ".so") {
		return r.Path(text)
	}
	return r.Text(text)
}

func (r *Redactor) dumped(t *profile.ThreadDump, f *Functions) {
	t.Name, t.Err, t.State = r.ThreadName(t.Name), r.Text(t.Err), r.threadState(t.State)
	t.Stack.Virtual.Name, t.Peer = r.ThreadName(t.Stack.Virtual.Name), r.Text(t.Peer)
	if t.Virtual != nil {
		v := *t.Virtual
		v.Name = r.ThreadName(v.Name)
		t.Virtual = &v
	}
	t.Stack.Frames = slices.Clone(t.Stack.Frames)
	for i := range t.Stack.Frames {
		t.Stack.Frames[i].Func = f.Of(t.Stack.Frames[i].Func)
	}
	t.Holds = slices.Clone(t.Holds)
	for i := range t.Holds {
		t.Holds[i].Class = r.Class(t.Holds[i].Class)
	}
	if t.WaitsFor != nil {
		w := *t.WaitsFor
		w.Class, w.Owner.Name = r.Class(w.Class), r.ThreadName(w.Owner.Name)
		t.WaitsFor = &w
	}
}

// compiling begins the state of a compiler thread. The method that it compiles follows.
const compiling = "compiling "

func (r *Redactor) threadState(state string) string {
	if what, ok := strings.CutPrefix(state, compiling); ok {
		return compiling + r.Text(what)
	}
	return r.Text(state)
}

func (r *Redactor) Heap(h *profile.Heap) {
	h.MainClass = r.Program(h.MainClass)
	for i := range h.Classes {
		c := h.Classes[i]
		c.Name, c.Loader = r.Class(c.Name), r.heapLoader(c.Loader)
	}
	for i := range h.Largest {
		h.Largest[i].Class = r.Class(h.Largest[i].Class)
	}
	h.Notes = r.texts(h.Notes)
}

func (r *Redactor) Memory(m *profile.Memory) {
	m.MainClass = r.Program(m.MainClass)
	for i := range m.Parts {
		p := &m.Parts[i]
		p.Pieces = slices.Clone(p.Pieces)
		for k := range p.Pieces {
			if path := &p.Pieces[k].Name; strings.HasPrefix(*path, "/") {
				*path = r.Path(*path)
			}
		}
	}
	if m.Group != nil {
		m.Group.Path = r.Path(m.Group.Path)
	}
	m.Notes = r.texts(m.Notes)
}

func (r *Redactor) Triage(t *profile.Triage) {
	for i := range t.Findings {
		f := &t.Findings[i]
		f.Claim, f.Next, f.Evidence = r.Text(f.Claim), r.Text(f.Next), r.texts(f.Evidence)
	}
	t.Notes = r.texts(t.Notes)
	for i := range t.Unknown {
		t.Unknown[i].Why = r.Text(t.Unknown[i].Why)
	}
}

func (r *Redactor) HeapHeld(h *profile.HeapHeld) {
	h.MainClass = r.Program(h.MainClass)
	if h.Growth != nil {
		for _, c := range h.Growth.Classes {
			c.Name, c.Loader = r.Class(c.Name), r.heapLoader(c.Loader)
		}
	}
	for _, l := range h.Leaks {
		l.Path = r.links(l.Path)
		for i := range l.Classes {
			l.Classes[i] = r.Class(l.Classes[i])
		}
		for i := range l.Allocs {
			a := &l.Allocs[i]
			a.Class = r.Class(a.Class)
			for k := range a.Stack {
				a.Stack[k] = r.Method(a.Stack[k])
			}
		}
	}
	for _, c := range h.Holders {
		c.Class = r.Class(c.Class)
		for _, row := range c.Rows {
			row.Path = r.links(row.Path)
		}
	}
	h.Notes = r.texts(h.Notes)
}

// heapLoader redacts the loader of a class, or the class of the loader.
func (r *Redactor) heapLoader(name string) string {
	switch name {
	case "", "boot", "platform", "application":
		return name
	}
	return r.Class(name)
}

func (r *Redactor) links(path []profile.HeapLink) []profile.HeapLink {
	path = slices.Clone(path)
	for i := range path {
		l := &path[i]
		if l.Field != "" {
			l.Field = r.MethodOf(l.Class, l.Field)
		}
		if l.Thread != "" {
			l.Thread = r.ThreadName(l.Thread)
		}
		l.Class, l.Loader = r.Class(l.Class), r.heapLoader(l.Loader)
	}
	return path
}
