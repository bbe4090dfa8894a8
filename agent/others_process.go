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

// other is a process that was sampled. Its second sample has goprof read about it, once, if there is CPU time for that
// in the purse: most processes live too briefly for two.
type other struct {
	pid     int
	name    string // the kernel's name for it
	newest  int64  // when it was sampled last
	samples int
	read    bool // what follows is known, or cannot be
	kernel  bool // it is a thread of the kernel
	whose   resource.Attributes
	code    *process.Process // nil: its code cannot be read
	silent  bool             // its memory or files do not answer
	sites   map[siteKey]site
	sitesOf uint64 // the code's generation to which sites belong
	key     string // of its group; empty as long as whose is not known
}

type siteKey struct {
	pc   uint64
	leaf bool
}

// site is what is known of an address. It is no code if fn is nil.
type site struct {
	fn   *profile.Func
	root bool // a thread begins there
}

// The bounds of what is kept of processes.
const (
	mostOpened   = 128 // processes whose code is read at a time
	mostMappings = 1 << 14
	mostSites    = 4096 // of a process
)

// kthreadd is the parent of the kernel's threads (init/main.c, rest_init).
const kthreadd = 2

// Names of what has none.
const (
	endedName   = "[ended]" // a process that was gone, or another program, before goprof had its name
	kernelName  = "[kernel]"
	unknownName = "[unknown]"  // code that goprof may not read
	unreadName  = "[not read]" // code of a process that was not sampled before, or for which the budget had no room
)

func (s *Others) forgetAll() {
	for pid := range s.known {
		s.forget(pid)
	}
	clear(s.names)
}

// doubt forgets the processes that may be others by now.
func (s *Others) doubt() {
	clear(s.names)
	codes := map[int]*process.Process{}
	for pid, p := range s.known {
		if codes[pid] = p.code; p.code == nil {
			delete(codes, pid)
			s.forget(pid)
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
			s.known[pid].code = nil // which closes late
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
		p.sites = map[siteKey]site{} // other code may be there when it is opened again
		s.opened--
	}
}

func (s *Others) name(pid int, name string) {
	if p := s.known[pid]; p != nil || name == "" {
		return
	}
	if len(s.names) >= mostNames {
		clear(s.names) // they can be read of those that are still there
	}
	s.names[pid] = strings.ToValidUTF8(name, "\uFFFD")
}

func (s *Others) nameOf(pid int) string {
	if p := s.known[pid]; p != nil {
		return p.name
	}
	return s.names[pid]
}

// process returns the process with that number, about which it reads what can be read.
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
	stays := when >= s.changed[pid] // /proc still shows what the sample has met
	if p.name == "" {
		name := ""
		if stays {
			_, name, _ = procfs.ReadStat(pid, pid)
		}
		p.name = cmp.Or(name, endedName)
	}
	if stays && p.samples > 1 && !p.read && s.mayRead() {
		s.read(p)
	}
	return p
}

// read reads about a process. If the answer comes too late, the process is not read again.
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
	p.name, p.kernel, p.whose, p.code = facts.name, facts.kernel, facts.whose, facts.code
	if p.key = keyOf(p.whose); p.code != nil {
		s.opened++
	}
}

// paid is inTimeOr for what takes CPU time of the purse. An answer that comes too late is paid, too.
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

// makeRoom forgets processes that are quiet, or all if there are none.
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

// makeRoomToRead closes the process that was sampled the longest time ago, if too many are open.
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
		oldest.read = false // and may be read again
	}
}

// about reads about a process. It waits for the process's memory and files, and touches nothing of Others that changes.
func (s *Others) about(pid int) *other {
	p := &other{pid: pid}
	stat, name, err := procfs.ReadStat(pid, pid)
	if err != nil {
		return p
	}
	name = cmp.Or(name, unknownName) // a process may have an empty name
	p.name = name
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
	whose.Remove(resource.ProcessPID) // a group may have several
	p.whose = whose
	return p
}

// named are the attributes of a process that says nothing of itself.
func (s *Others) named(name, kind string) resource.Attributes {
	own := resource.Process{Service: name, Host: s.machine}
	a := slices.Clone(s.o.Settings.Attributes)
	a.Add(own.Attributes())
	a.Set(resource.RuntimeName, kind)
	return a
}

// stack is the stack of a sample. A stack that does not end where a thread begins is truncated: code without frame
// pointers has led nowhere, or to a place that is no code behind a call.
func (s *Others) stack(p *other, c *ring.Chain) *profile.Stack {
	stack := &profile.Stack{Truncated: profile.NoUnwindInfo}
	put := func(fn *profile.Func, kind profile.Kind) {
		if n := len(stack.Frames); n > 0 && stack.Frames[n-1].Func == fn && fn.Name == fn.Module {
			return // code of one library, of whose functions no name is known
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

// learn finds out what code is at addresses. If a process's files or memory do not answer, none of it is read again.
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

// foundCode is what code is at an address.
type foundCode struct {
	fn       profile.Func
	is, root bool
}

// codeAt looks an address up. A return address is one only behind a call, or where a thread begins: Go puts the address
// behind the first instruction of runtime.goexit at the root of a goroutine.
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

// roots are functions that a thread begins with and that have no unwind rules which say so.
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

// callsMain reports whether code of a C library without a name calls a program's main, or a thread's function. Both are
// static functions, which compilers put next to the exported function of the same file (glibc: csu/libc-start.c,
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
