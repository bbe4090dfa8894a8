package triage

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"goprof/profile"
	"goprof/profile/naming"
)

// Much CPU time is not a disease: a batch that computes for hours is healthy, so computing is only a note. The finding
// is a thread that never rests and, by its samples, makes no progress:
//
//   - All of its samples are in one method, by one path of callers: a loop that does not end. One long computation
//     without calls looks the same, so the main thread, in which most batches compute, is left out.
//   - All of its samples are below one call of a regular expression or of a map of the class library: an expression
//     that tries all ways, a map that has become a ring. No such call takes seconds in a healthy program.
const (
	hotCPUs = 0.8 // of one CPU. Less is no noticeable load
	// onePath is the part of a thread's samples that must be at one place. Some samples fail.
	onePath = 0.97
	// A thread never rests if it had a CPU for alwaysBusy of the time. The time in which it waited for a CPU is left
	// out. It must also have had a CPU for leastCPU of the whole time. A machine with fifty busy threads per CPU gives
	// a thread that much.
	alwaysBusy = 0.9
	leastCPU   = 0.02
	// hotSamples is the least number of samples to judge a thread.
	hotSamples = 25
	// hotShare is the part of the program's CPU time that the methods named in a note must have together. hotMethods
	// limits their number: a longer list would not help.
	hotShare   = 0.6
	hotMethods = 5
)

func cpuHot(x *exam) *suspicion {
	w := &x.work
	if x.CPU == nil {
		return x.cannotTell("there is no recording of CPU time")
	}
	if x.starved() {
		return x.cannotTell(starvedText)
	}
	used := w.cpus(w.app)
	busy := x.busyThreads()
	caught := x.caught(busy)
	if len(caught) == 0 {
		if w.app >= hotSamples && (used >= hotCPUs || len(busy) > 0) {
			x.notes = append(x.notes, w.busyText(used, len(busy)))
		}
		return nil
	}
	first := caught[0]
	s := &suspicion{sure: scaled(first.share, onePath, 0.7, 0.8), severity: profile.Warning,
		claim: fmt.Sprintf("%s never rests and is likely caught in a loop: %s of its samples are in %s.",
			first.thread, percent(first.share), first.method),
		next: fmt.Sprintf("goprof dump --pid %d -n 5  (does it get on?), then goprof record --pid %d -d 30s", x.PID, x.PID)}
	if len(caught) > 1 {
		s.claim = fmt.Sprintf("%d threads never rest and are likely caught in loops: %s of the samples of %s are in %s.",
			len(caught), percent(first.share), first.thread, first.method)
	}
	for _, c := range caught[:min(4, len(caught))] {
		s.evidence = append(s.evidence, fmt.Sprintf("%s: %d samples, %s in %s, called by %s", c.thread, c.samples,
			percent(c.share), c.method, c.caller))
	}
	s.evidence = append(s.evidence, fmt.Sprintf("the program's threads use %.1f CPUs", used))
	return s
}

// busyText returns the note on a program that computes.
func (w *work) busyText(used float64, never int) string {
	text := fmt.Sprintf("the program computes: it uses %.1f CPUs", used)
	if never > 0 {
		text += fmt.Sprintf(", and %s never at rest", counted(never, "thread"))
	}
	names, in := w.hottest()
	if len(names) == 0 || len(names) > hotMethods {
		return text + ", in many methods"
	}
	return text + fmt.Sprintf("; %s of that in %s", percent(float64(in)/float64(w.app)), methodsText(names))
}

func methodsText(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return fmt.Sprintf("%d methods, most in %s", len(names), names[0])
}

// hottest returns the fewest methods that make up hotShare of the program's CPU time.
func (w *work) hottest() (names []string, samples int64) {
	for _, name := range profile.ByCount(w.methods) {
		if float64(samples) >= hotShare*float64(w.app) || len(names) > hotMethods {
			break
		}
		names, samples = append(names, name), samples+w.methods[name]
	}
	return names, samples
}

// busyThreads returns the program's threads that never rest, by number.
func (x *exam) busyThreads() map[int]string {
	busy := map[int]string{}
	for i := range x.Rates.Threads {
		t := &x.Rates.Threads[i]
		cpu, _ := t.CPU.Get()
		waited, _ := t.Waited.Get()
		if x.isApp(t.TID) && cpu >= leastCPU && cpu+waited >= alwaysBusy && cpu >= alwaysBusy*(1-waited) {
			busy[t.TID] = t.Name
		}
	}
	return busy
}

// caughtThread is a thread that makes no progress.
type caughtThread struct {
	thread         string
	method, caller string
	samples        int64
	share          float64
}

// caught finds, among the threads that never rest, those that make no progress. The surest come first.
func (x *exam) caught(busy map[int]string) (list []caughtThread) {
	trees := map[int]*callTree{}
	x.CPU.Each(func(frames []profile.Frame, n int64) {
		t, ok := naming.ThreadOf(frames[0].Func.Name)
		if _, never := busy[t.TID]; !ok || !never || t.Virtual {
			return
		}
		if trees[t.TID] == nil {
			trees[t.TID] = &callTree{}
		}
		trees[t.TID].add(frames[1:], n)
	})
	for tid, tree := range trees {
		path, n := tree.trunk()
		if tree.samples < hotSamples || len(path) == 0 {
			continue
		}
		method := path[len(path)-1]
		single := float64(tree.leaf(path)) >= onePath*float64(tree.samples) && busy[tid] != "main"
		if call := slices.IndexFunc(path, isNeverLong); !single && call < 0 {
			continue
		} else if call >= 0 {
			method, path = path[call], path[:call+1]
		}
		c := caughtThread{fmt.Sprintf("%q tid=%d", busy[tid], tid), method, "no method", tree.samples,
			float64(n) / float64(tree.samples)}
		if len(path) > 1 {
			c.caller = path[len(path)-2]
		}
		list = append(list, c)
	}
	sort.Slice(list, func(i, j int) bool {
		a, b := &list[i], &list[j]
		return cmp.Or(cmp.Compare(b.share, a.share), strings.Compare(a.thread, b.thread)) < 0
	})
	return list
}

// neverLong are methods whose calls never take seconds in a healthy program.
var neverLong = map[string][]string{
	"java.util.regex.Matcher":   {"matches", "find", "lookingAt", "match", "search"},
	"java.util.HashMap":         {"get", "getNode", "getEntry", "put", "putVal", "containsKey", "remove", "transfer"},
	"java.util.LinkedHashMap":   {"get"},
	"java.util.WeakHashMap":     {"get", "put", "containsKey", "remove"},
	"java.util.IdentityHashMap": {"get", "put", "containsKey", "remove"},
	"java.util.TreeMap":         {"get", "getEntry", "put", "containsKey", "remove"},
}

func isNeverLong(method string) bool {
	dot := strings.LastIndexByte(method, '.')
	return dot > 0 && slices.Contains(neverLong[method[:dot]], method[dot+1:])
}

// callTree holds a thread's samples by Java methods, from the root to the innermost.
type callTree struct {
	samples int64 // of this method and its callees
	here    int64 // of this method alone
	calls   map[string]*callTree
}

// add adds n samples of a stack, root first. Samples in which the thread collects garbage are left out.
func (c *callTree) add(frames []profile.Frame, n int64) {
	if !hasJava(frames) || collects(frames) {
		return
	}
	c.samples += n
	for i := range frames {
		if !frames[i].Kind.Java() {
			continue
		}
		name := frames[i].Func.Name
		if c.calls == nil {
			c.calls = map[string]*callTree{}
		}
		if c.calls[name] == nil {
			c.calls[name] = &callTree{}
		}
		c = c.calls[name]
		c.samples += n
	}
	c.here += n
}

// trunk returns the path from the root that onePath of the samples share, and the number of these samples.
func (c *callTree) trunk() (path []string, samples int64) {
	all := c.samples
	for at := c; ; {
		next := ""
		for name, call := range at.calls {
			if float64(call.samples) >= onePath*float64(all) {
				next = name
			}
		}
		if next == "" {
			return path, samples
		}
		at = at.calls[next]
		path, samples = append(path, next), at.samples
	}
}

// leaf returns the number of samples whose innermost method is the last one of path.
func (c *callTree) leaf(path []string) int64 {
	for _, name := range path {
		c = c.calls[name]
	}
	return c.here
}
