//go:build linux

package agent

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"

	"goprof/process"
	"goprof/process/procfs"
	"goprof/profile"
	"goprof/profile/resource"
	"goprof/sampler"
	"goprof/sampler/ring"
	"goprof/unwind"
)

// other is a process that was sampled. At its second sample goprof reads about it, once, if the purse allows that. Most
// processes do not live long enough for two samples.
type other struct {
	pid     int
	name    string // as the kernel knows it
	newest  int64  // the time of its last sample
	samples int
	read    bool // the fields below are known, or cannot be known
	kernel  bool // it is a thread of the kernel
	started uint64
	whose   resource.Attributes
	code    *process.Process // nil: its code cannot be read
	silent  bool             // its memory or files do not answer
	sites   map[siteKey]site
	sitesOf uint64 // the generation of code that sites belong to
	key     string // of its group; empty until whose is known
}

type siteKey struct {
	pc   uint64
	leaf bool
}

// site is what is known of an address. If fn is nil, the address holds no code.
type site struct {
	fn   *profile.Func
	root bool // a thread begins with this function
}

// Limits of what is kept of processes.
const (
	mostOpened   = 128 // processes whose code can be read at a time
	mostMappings = 1 << 14
	mostSites    = 4096 // of a process
)

// kthreadd is the parent of the kernel's threads (init/main.c, rest_init).
const kthreadd = 2

// Names in place of unknown ones.
const (
	endedName   = "[ended]" // the process ended or became another program before goprof read its name
	kernelName  = "[kernel]"
	unknownName = "[unknown]"  // goprof may not read this code
	unreadName  = "[not read]" // code of a process with only one sample, or the budget was used up
)

func (s *Others) forgetAll() {
	for pid := range s.known {
		s.forget(pid)
	}
	clear(s.names)
}

// isStill reports whether a process began at that moment.
func isStill(pid int, started uint64) bool {
	stat, _, err := procfs.ReadStat(pid, pid)
	return err == nil && stat.Start == started
}

// doubt forgets the processes whose numbers may now belong to others.
func (s *Others) doubt() {
	clear(s.names)
	codes := map[int]*process.Process{}
	for pid, p := range s.known {
		if p.code != nil {
			codes[pid] = p.code
		} else if !p.kernel || !isStill(pid, p.started) {
			s.forget(pid) // a thread of the kernel becomes no other program
		}
	}
	gone, ok := paid(s, func() (gone []int) {
		for pid, code := range codes {
			if code.Alive() != nil {
				gone = append(gone, pid)
			}
		}
		return gone
	}, func([]int) {
		for _, code := range codes {
			code.Close()
		}
	})
	for _, pid := range gone {
		s.forget(pid)
	}
	if !ok {
		for pid := range codes {
			s.known[pid].code = nil // late closes code
			delete(s.known, pid)
			s.opened--
		}
	}
}

func (s *Others) forget(pid int) {
	if p := s.known[pid]; p != nil {
		s.close(p)
	}
	delete(s.known, pid)
	delete(s.names, pid)
}

func (s *Others) close(p *other) {
	if p.code != nil {
		p.code.Close()
		p.code = nil
		p.sites = map[siteKey]site{} // the code may have changed by the time it is opened again
		s.opened--
	}
}

func (s *Others) name(pid int, name string) {
	if p := s.known[pid]; p != nil || name == "" {
		return
	}
	if len(s.names) >= mostNames {
		clear(s.names) // the names can be read again of processes that still run
	}
	s.names[pid] = strings.ToValidUTF8(name, "\uFFFD")
}

// nameOf returns the name of a process, or "" if it is not certain.
func (s *Others) nameOf(pid int) string {
	p := s.known[pid]
	if p == nil {
		return s.names[pid]
	}
	if p = cmp.Or(s.unsure[p], p); p.name == endedName {
		return ""
	}
	return p.name
}

// process returns the process with that number, with all that can be read of it.
func (s *Others) process(pid int, when int64) *other {
	p := s.known[pid]
	if p == nil {
		s.makeRoom(when)
		p = &other{pid: pid, name: s.names[pid], sites: map[siteKey]site{}}
		delete(s.names, pid)
		s.known[pid] = p
	}
	p.newest = when
	p.samples++
	stays := when >= s.changed[pid] // /proc still shows the process that was sampled
	if p.name == "" {
		s.unsure[p] = &other{pid: pid, name: endedName}
		name := ""
		if stays {
			_, name, _ = procfs.ReadStat(pid, pid)
		}
		p.name = cmp.Or(name, endedName)
	}
	if stays && p.samples > 1 && !p.read && s.mayRead() {
		s.unsure[p] = cmp.Or(s.unsure[p], &other{pid: pid, name: p.name})
		s.read(p)
	}
	return p
}

// read reads about a process. If the answer comes too late, goprof does not read that process again.
func (s *Others) read(p *other) {
	p.read = true
	s.makeRoomToRead()
	facts, ok := paid(s, func() *other { return s.about(p.pid) }, func(facts *other) {
		if facts != nil && facts.code != nil {
			facts.code.Close()
		}
	})
	if !ok || facts.name == "" {
		return
	}
	p.name, p.kernel, p.started = facts.name, facts.kernel, facts.started
	p.whose, p.code = facts.whose, facts.code
	if p.key = keyOf(p.whose); p.code != nil {
		s.opened++
	}
}

// paid is inTimeOr for work that the purse pays. A late answer is paid, too.
func paid[T any](s *Others, ask func() T, late func(T)) (answer T, ok bool) {
	answer, ok = inTimeOr(func() T {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		began := sampler.ThreadCPU()
		defer func() { s.purse.owed.Add(int64(sampler.ThreadCPU() - began)) }()
		return ask()
	}, late)
	s.purse.pay()
	return answer, ok
}

// makeRoom forgets quiet processes, or all processes if none is quiet.
func (s *Others) makeRoom(now int64) {
	if len(s.known) < mostKnown {
		return
	}
	for pid, p := range s.known {
		if now-p.newest > quietFor {
			s.forget(pid)
		}
	}
	if len(s.known) >= mostKnown {
		s.forgetAll()
	}
}

// makeRoomToRead closes the process with the oldest last sample if too many are open.
func (s *Others) makeRoomToRead() {
	if s.opened < mostOpened {
		return
	}
	var oldest *other
	for _, p := range s.known {
		if p.code != nil && (oldest == nil || p.newest < oldest.newest) {
			oldest = p
		}
	}
	if oldest != nil {
		s.close(oldest)
		oldest.read = false // it may be read again
	}
}

// about reads about a process. It may block on the process's memory and files, so it does not touch mutable fields of
// Others.
func (s *Others) about(pid int) *other {
	p := &other{pid: pid}
	stat, name, err := procfs.ReadStat(pid, pid)
	if err != nil {
		return p
	}
	name = cmp.Or(name, unknownName) // the kernel's name of a process may be empty
	p.name, p.started = name, stat.Start
	if p.kernel = stat.Memory == 0 && (pid == kthreadd || stat.Parent == kthreadd); p.kernel {
		p.whose = s.named("kernel", kernelRuntime)
		return p
	}
	exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if exe != "" {
		exe = path.Base(strings.TrimSuffix(exe, " (deleted)"))
	}
	code, err := process.Open(pid)
	kind := ""
	if err == nil && len(code.Mappings()) <= mostMappings {
		p.code = code
		kind = runtimeOf(exe, code)
	} else if err == nil {
		code.Close()
	}
	whose := slices.Clone(s.o.Settings.Attributes)
	if s.o.Enrich != nil {
		s.o.Enrich(pid, &whose)
	}
	whose.Add(s.named(name, kind))
	whose.Set(resource.RuntimeName, kind)
	whose.Set(resource.ProcessExecutable, exe)
	whose.Remove(resource.ProcessPID) // a group may have several processes
	p.whose = whose
	return p
}

// named returns the attributes of a process that publishes none.
func (s *Others) named(name, kind string) resource.Attributes {
	own := resource.Process{Service: name, Host: s.machine}
	a := slices.Clone(s.o.Settings.Attributes)
	a.Add(own.Attributes())
	a.Set(resource.RuntimeName, kind)
	return a
}

// stack makes the stack of a sample. A stack is truncated if its end is not the beginning of a thread: code without
// frame pointers has ended it, or has led to an address that is not behind a call.
func (s *Others) stack(p *other, c *ring.Chain) *profile.Stack {
	stack := &profile.Stack{Truncated: profile.NoUnwindInfo}
	put := func(fn *profile.Func, kind profile.Kind) {
		if n := len(stack.Frames); n > 0 && stack.Frames[n-1].Func == fn && fn.Name == fn.Module {
			return // code of one library without names of functions
		}
		stack.Frames = append(stack.Frames, profile.Frame{Func: fn, Kind: kind, BCI: -1})
	}
	if c.InKernel {
		put(s.shared(profile.Func{Name: kernelName}), profile.Kernel)
	}
	if p.kernel || c.InKernel && len(c.Calls) == 0 {
		stack.Truncated = profile.Whole
		return stack
	}
	s.learn(p, c.Calls)
	for i, pc := range c.Calls {
		at, ok := p.sites[siteKey{pc, i == 0}]
		if !ok || at.fn == nil {
			break
		}
		put(at.fn, profile.Native)
		if at.root {
			stack.Truncated = profile.Whole
			break
		}
	}
	if len(stack.Frames) == 0 {
		name := unknownName
		if !p.read || p.code != nil || p.silent {
			name = unreadName
		}
		put(s.shared(profile.Func{Name: name}), profile.Gap)
	}
	return stack
}

func (s *Others) shared(f profile.Func) *profile.Func {
	fn := s.funcs[f]
	if fn == nil {
		if len(s.funcs) >= mostFuncs {
			clear(s.funcs)
		}
		fn = &f
		s.funcs[f] = fn
	}
	return fn
}

// learn finds out what is at addresses. If a process's files or memory do not answer, it is not read again.
func (s *Others) learn(p *other, calls []uint64) {
	var fresh []siteKey
	if p.code != nil && p.code.Generation() != p.sitesOf {
		clear(p.sites)
		p.sitesOf = p.code.Generation()
	}
	for i, pc := range calls {
		if key := (siteKey{pc, i == 0}); p.code != nil {
			if _, ok := p.sites[key]; !ok {
				fresh = append(fresh, key)
			}
		}
	}
	if len(fresh) == 0 || !s.mayRead() {
		return
	}
	if len(p.sites) >= mostSites {
		clear(p.sites)
	}
	code := p.code
	found, ok := paid(s, func() []foundCode {
		list := make([]foundCode, len(fresh))
		for i, key := range fresh {
			list[i] = codeAt(code, key)
		}
		return list
	}, func([]foundCode) { code.Close() })
	if !ok {
		p.silent, p.code = true, nil
		s.opened--
		return
	}
	for i, key := range fresh {
		at := site{root: found[i].root}
		if found[i].is {
			at.fn = s.shared(found[i].fn)
		}
		p.sites[key] = at
	}
}

// foundCode describes the code at an address.
type foundCode struct {
	fn       profile.Func
	is, root bool
}

// codeAt looks an address up. A return address is valid only behind a call or where a thread begins: at the root of a
// goroutine, Go puts the address behind the first instruction of runtime.goexit.
func codeAt(p *process.Process, at siteKey) (f foundCode) {
	code, ok := p.Code(at.pc, at.leaf)
	if !ok {
		return f
	}
	root := isRoot(p, &code, at.pc)
	if before := make([]byte, p.CPU().MaxCall); !at.leaf && !root &&
		(p.Read(at.pc-uint64(len(before)), before) != nil || !p.CPU().EndsInCall(before)) {
		return f
	}
	name := cmp.Or(unwind.Demangled(code.Symbol), code.Image)
	return foundCode{profile.Func{Name: name, Module: code.Image, Build: code.BuildID}, true, root}
}

// roots are functions that threads begin with, and whose unwind rules do not mark them as outermost.
var roots = []string{"_start", "clone", "__clone", "clone3", "__clone3", "start_thread", "thread_start",
	"__libc_start_main", "__libc_start_main_impl", "__libc_start_call_main", "runtime.goexit", "runtime.mstart",
	"runtime.rt0_go"}

// isRoot reports whether a thread begins with the function at an address.
func isRoot(p *process.Process, code *process.Code, pc uint64) bool {
	if slices.ContainsFunc(roots, func(name string) bool {
		return code.Symbol == name || strings.HasPrefix(code.Symbol, name+"@") || code.Symbol == name+".abi0"
	}) {
		return true
	}
	if row := code.Row; row != nil && slices.ContainsFunc(row.Saved, func(r process.SavedReg) bool {
		return r.Reg == row.RA && r.Rule.Kind == process.RuleUndefined
	}) {
		return true
	}
	return code.Symbol == "" && (strings.HasPrefix(code.Image, "libc.") || strings.HasPrefix(code.Image, "libpthread") ||
		strings.HasPrefix(code.Image, "ld-musl")) && callsMain(p, code.Image, pc)
}

// callsMain reports whether unnamed code of a C library calls a program's main or a thread's function. Both callers are
// static functions. Compilers place them next to the exported function of the same file (glibc: csu/libc-start.c,
// __libc_start_call_main; nptl/pthread_create.c, start_thread).
func callsMain(p *process.Process, image string, pc uint64) bool {
	for _, near := range []struct {
		name          string
		before, after uint64
	}{{"__libc_start_main", 512, 512}, {"pthread_create", 2048, 0}} {
		if at, err := p.Global(image, near.name); err == nil && pc >= at-near.before && pc < at+near.after {
			return true
		}
	}
	return false
}
