package output

import (
	"cmp"
	"regexp"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"goprof/profile"
)

// These functions describe in a few words in what code a recording's samples are. A sample counts for the topmost Java
// method of its stack, even if it is in native code that this method called. So a reader can find "the hottest method"
// in the program. A sample in the kernel counts for the system call. A stack without a Java method counts for the job
// of its thread, by the names of its native functions: collector, compiler, or other work of the JVM.

const mostParts = 8

// Hottest sums up stacks that are no longer kept. The zero value is empty.
type Hottest struct {
	sums, states map[part]int64
	total        int64
}

// Add sums up a tree that will be dropped.
func (h *Hottest) Add(t *Tree, of *profile.Meta) { *h = h.with(t, of) }

// Describe fills in Hottest and States from the added trees and from one more.
func (h *Hottest) Describe(s *profile.Summary, t *Tree) {
	all := h.with(t, &s.Meta)
	s.Hottest, s.States = all.parts(all.sums, mostParts), all.parts(all.states, 0)
}

// with returns the sum of what was added before and of a tree.
func (h *Hottest) with(t *Tree, of *profile.Meta) Hottest {
	heat := newHeat(t, of)
	for p, n := range h.sums {
		heat.sums[p] += n
	}
	for p, n := range h.states {
		heat.states[p] += n
	}
	heat.total += h.total
	return heat.Hottest
}

// heatSum sums up samples by code.
type heatSum struct {
	Hottest
	tree   *Tree
	gc     string // the name of the collector
	labels []labelFacts
}

// part is a key for sums of samples.
type part struct{ name, state string }

// labelFacts are the facts that follow from a label. They are found once for each label.
type labelFacts struct {
	waits bool   // threads wait in it
	class bool   // as a leaf, it is the class of an allocated object
	own   ownJob // of the JVM
	call  string // a system call
}

// hotPath is what is known about the part of a stack from its root to a node.
type hotPath struct {
	top    int32   // label of the topmost Java method, -1: none
	app    topmost // counts if the thread waits
	own    ownJob
	native int32 // label of the topmost native frame above the Java ones, -1: none
	state  int32 // label of the thread's state, -1: none
}

func newHeat(t *Tree, of *profile.Meta) *heatSum {
	h := &heatSum{tree: t, gc: "garbage collector", labels: make([]labelFacts, len(t.Labels)),
		Hottest: Hottest{sums: map[part]int64{}, states: map[part]int64{}}}
	if of.Collector != "" {
		h.gc = of.Collector + " collector"
	}
	allocates := slices.Contains(strings.Split(of.Mode, ","), "alloc")
	for i, l := range t.Labels {
		h.labels[i] = factsOf(l)
		h.labels[i].class = allocates && isClass(l)
	}
	at := make([]hotPath, len(t.Nodes))
	at[0] = hotPath{top: -1, native: -1, state: -1}
	for n := 1; n < len(t.Nodes); n++ {
		node := &t.Nodes[n]
		below := at[node.Parent]
		at[n] = h.above(below, int32(n), node.Name)
		switch {
		case node.Self == 0:
		case h.labels[node.Name].class:
			h.count(hotPath{top: node.Name, app: topmost{int32(n), true}, native: -1, state: -1}, node)
		default:
			h.count(at[n], node)
		}
	}
	return h
}

// above returns the facts about a stack with one more frame on top.
func (h *heatSum) above(s hotPath, node, label int32) hotPath {
	f, kind := &h.labels[label], h.tree.Labels[label].Kind
	if s.state >= 0 { // it is about what ended the wait
		return s
	}
	s.app = s.app.above(node, kind, f.waits)
	switch {
	case kind == LabelState:
		s.state = label
	case kind.Java():
		s.top, s.native = label, -1
	case kind == LabelNative || kind == LabelKernel || kind == LabelGap:
		s.native = label
		if s.top < 0 {
			s.own = max(s.own, f.own)
		}
	case kind == LabelThread:
		s.own = f.own
	}
	return s
}

func (h *heatSum) count(s hotPath, node *TreeNode) {
	leaf := h.tree.Labels[node.Name]
	if s.state >= 0 {
		leaf = h.tree.Labels[s.state]
	}
	if leaf.Text == profile.NotSampled || leaf.Text == profile.ExitedThreads {
		return // CPU time without a sample
	}
	h.total += node.Self
	state, waits := stateOf(leaf)
	if state != "" {
		h.states[part{name: state}] += node.Self
	}
	h.sums[part{h.name(s, waits), state}] += node.Self
}

// name returns the name under which a sample counts.
func (h *heatSum) name(s hotPath, waits bool) string {
	switch {
	case !waits && s.native >= 0 && h.labels[s.native].call != "":
		return "kernel: " + h.labels[s.native].call
	case waits && s.app.java:
		return h.nameOf(s.app.node)
	case s.top >= 0:
		return h.tree.Labels[s.top].Text
	case s.own == gcJob:
		return h.gc
	case s.own != noJob:
		return ownJobs[s.own]
	case waits && s.app.node != 0:
		return nativeName(h.nameOf(s.app.node))
	case s.native >= 0:
		return nativeName(h.tree.Labels[s.native].Text)
	}
	return "no frame known"
}

func (h *heatSum) nameOf(node int32) string { return h.tree.Labels[h.tree.Nodes[node].Name].Text }

// nativeName returns the name of a function. If the function has none, it is the name of its library: libfoo.so for
// libfoo.so+0x1f.
func nativeName(name string) string {
	if image, _, ok := strings.Cut(name, "+0x"); ok && image != "" {
		if image == "libjvm.so" {
			return ownJobs[vmJob]
		}
		return "native code of " + image
	}
	return name
}

// parts returns sums as shares, the largest first. most bounds their number; 0: all.
func (h *Hottest) parts(of map[part]int64, most int) []profile.Part {
	var all []profile.Part
	for p, n := range of {
		all = append(all, profile.Part{Name: p.name, State: p.state, Share: float64(n) / float64(h.total)})
	}
	sort.Slice(all, func(i, j int) bool {
		a, b := &all[i], &all[j]
		return cmp.Or(cmp.Compare(b.Share, a.Share), strings.Compare(a.Name, b.Name), strings.Compare(a.State, b.State)) < 0
	})
	const least = 0.01
	for i := range all {
		if most > 0 && (i == most || i > 0 && all[i].Share < least) {
			return all[:i]
		}
	}
	return all
}

// ownJob is the job of a thread of the JVM itself. If several frames show a job, the job with the largest number
// counts: the VM thread also collects garbage. Among equal jobs, the frame nearest to the root counts.
type ownJob uint8

const (
	noJob ownJob = iota
	vmJob
	jitJob
	c1Job
	c2Job
	gcJob
)

var ownJobs = [...]string{vmJob: "the JVM itself", jitJob: "JIT compiler", c1Job: "C1 compiler", c2Job: "C2 compiler"}

// jobRules find the job by the name of a native function, or by the name of a thread if stacks begin with threads.
// Stacks with a Java method are never looked up here. The functions are HotSpot's, of all releases from 8 on.
var jobRules = []struct {
	job   ownJob
	names *regexp.Regexp
}{
	{gcJob, regexp.MustCompile(`^(?:VM_)?(?:G1|ZGC|Z(?:Worker|Driver|Director|Stat|Unmapper|Uncommitter|Mark|Relocat|Generation|Heap|Thread|Task|Barrier|Root|Reference|Old|Young|Page|Remembered|Runtime)|X(?:Worker|Driver|Heap|Mark|Relocate|Thread)|` +
		`Shenandoah|PSParallel|PSScavenge|PSPromotion|PSOldGen|PSYoung|ParallelScavenge|Parallel(?:GC|Compact)|ParCompaction|ParNew|ParScan|DefNew|TenuredGen|SerialHeap|Serial(?:Full|Block)|` +
		`Gen(?:Collect|Mark|Marksweep)|GenCollectedHeap|CMS|ConcurrentMarkSweep|ConcurrentG1|ConcurrentMark|ConcurrentGC|SuspendibleThreadSet|MarkSweep|OopStorage|GCTask|GangWorker|AbstractGangWorker|WorkerThread|WorkerTask|` +
		`StealTask|ScavengeRoots|OldToYoung|GenCollectForAllocation|CollectForAllocation|CollectForMetadata|GC_|StringDedup)`)},
	{c2Job, regexp.MustCompile(`^C2Compiler::`)},
	{c1Job, regexp.MustCompile(`^Compiler::compile_method$`)},
	{jitJob, regexp.MustCompile(`^(?:CompileBroker::|CompilerThread::|JVMCI)`)},
	{vmJob, regexp.MustCompile(`^(?:VMThread|WatcherThread|PeriodicTask|ServiceThread|MonitorDeflationThread|NMethodSweeper|AttachListener|` +
		`NotificationThread|CodeCacheSweeper|signal_thread_entry|JfrRecorder|JfrThreadSampler|Threads::destroy_vm|SafepointSynchronize)`)},
}

// threadRules find the job by the name of a thread. The kernel may have cut the name to 15 bytes.
var threadRules = []struct {
	job   ownJob
	names *regexp.Regexp
}{
	{gcJob, regexp.MustCompile(`^\[(?:GC Thread#|G1 (?:Main|Conc|Refine|Young|Service)|ParGC Thread|Gang worker|ZWorker|ZDriver|ZDirector|ZStat|ZUn|XWorker|XDriver|Shenandoah|Concurrent Mark|GC task thread)`)},
	{c2Job, regexp.MustCompile(`^\[C2 CompilerThre`)},
	{c1Job, regexp.MustCompile(`^\[C1 CompilerThre`)},
	{vmJob, regexp.MustCompile(`^\[(?:VM Thread|VM Periodic Tas|Service Thread|Monitor Deflati|Signal Dispatch|Sweeper thread)`)},
}

func factsOf(l Name) (f labelFacts) {
	f.waits = waitsIn(l)
	switch {
	case l.Kind.Java():
		return f
	case l.Kind == LabelThread:
		for _, r := range threadRules {
			if r.names.MatchString(l.Text) {
				f.own = r.job
			}
		}
		return f
	case l.Kind != LabelNative && l.Kind != LabelKernel:
		return f
	}
	for _, r := range jobRules {
		if r.names.MatchString(l.Text) {
			f.own = r.job
			break
		}
	}
	f.call = systemCall(l)
	return f
}

// isClass reports whether the leaf of an allocation is the class of an object that was put outside of its thread's
// buffer. In collapsed stacks such a class has the suffix of the kernel's functions, as async-profiler writes it. But
// the leaves of other events may really be functions of the kernel. Such a function has no bracket, and a dot only
// before a suffix of the compiler. A name without a dot is a class if it begins with a capital letter and has no
// underscore: ZSTD_compress is a function.
func isClass(l Name) bool {
	if l.Kind != LabelKernel {
		return false
	}
	name := compilersPart.ReplaceAllString(l.Text, "")
	first, _ := utf8.DecodeRuneInString(name)
	return strings.ContainsAny(name, "[.") || unicode.IsUpper(first) && !strings.Contains(name, "_")
}

// compilersPart matches what compilers and linkers add to the name of a function: foo.isra.0, foo.part.0.cold.
var compilersPart = regexp.MustCompile(
	`(?:\.(?:part|isra|constprop|cold|lto_priv|llvm|clone|localalias|__uniq)(?:\.[0-9]+)?)+$`)

// systemCall returns the system call of a libc function. It is "" if the function makes none. Nearly all CPU time of
// such a function is the kernel's.
func systemCall(l Name) string {
	name := l.Text
	if l.Kind == LabelKernel {
		return name
	}
	name, _, _ = strings.Cut(name, "@")
	for _, prefix := range []string{"__GI_", "__libc_", "__", "_"} {
		name = strings.TrimPrefix(name, prefix)
	}
	if strings.HasPrefix(name, "futex_") || name == "lll_lock_wait" || name == "lll_lock_wake" {
		return "futex"
	}
	for _, suffix := range []string{"_nocancel", "64", "_time"} {
		name = strings.TrimSuffix(name, suffix)
	}
	if systemCalls[name] {
		return name
	}
	return ""
}

var systemCalls = func() map[string]bool {
	all := map[string]bool{}
	for _, name := range strings.Fields(`read write pread pwrite readv writev preadv pwritev sendfile splice recv recvfrom recvmsg recvmmsg
		send sendto sendmsg sendmmsg accept accept4 connect poll ppoll select pselect epoll_wait epoll_pwait epoll_pwait2 epoll_ctl
		open openat close stat fstat lstat fstatat newfstatat statx access lseek fsync fdatasync ftruncate fallocate getdents
		mmap munmap mremap mprotect madvise sched_yield nanosleep clock_nanosleep syscall futex ioctl fcntl
		socket bind listen shutdown pipe pipe2 eventfd unlink rename mkdir rmdir getrandom tgkill membarrier`) {
		all[name] = true
	}
	return all
}()
