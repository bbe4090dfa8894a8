package autopsy

import (
	"fmt"

	"goprof/process/maybe"
	"goprof/profile"
	"goprof/profile/contention"
	"goprof/profile/pools"
	"goprof/session/postmortem"
	"goprof/triage/hserr"
)

// Judge returns what ended the process, and what else was wrong at that moment. name is the name of the core file in
// commands that a user can type.
func Judge(d *profile.Dump, f *postmortem.Facts, name string) *profile.Triage {
	t := &profile.Triage{Findings: []profile.Finding{}, Notes: []string{}, Unknown: []profile.Unknown{}}
	if r := reportOf(d, f); r != nil {
		t = hserr.Judge(r)
		if len(t.Findings) > 0 {
			t.Findings[0].Evidence = append(t.Findings[0].Evidence, stackText(d)...)
		}
	} else {
		t.Notes = append(t.Notes, f.Version, "nothing has ended the process: a debugger wrote this core (gcore)")
	}
	for _, rule := range []func(*profile.Dump, *postmortem.Facts, string) *profile.Finding{deadlocks, heapFull, codeFull} {
		if found := rule(d, f, name); found != nil {
			t.Findings = append(t.Findings, *found)
		}
	}
	t.Notes = append(t.Notes, notes(d, f)...)
	t.Unknown = append(t.Unknown, unknown(d, f)...)
	return t
}

// mostFrames limits how many frames of the dead thread are shown.
const mostFrames = 12

func stackText(d *profile.Dump) (lines []string) {
	r := d.Core.Signal
	if d.Core.Cause != nil {
		r = d.Core.Cause
	}
	frames := d.Threads[0].Stack.Frames
	for i := max(r.Frame, 0); i < len(frames) && len(lines) < mostFrames; i++ {
		if f, ok := frameOf(&frames[i]); ok {
			text := fmt.Sprintf("%c  %s", f.Kind, f.Text)
			if frames[i].Line > 0 {
				text += fmt.Sprintf(":%d", frames[i].Line)
			}
			lines = append(lines, text)
		}
	}
	return lines
}

// maxRing limits how many threads of a deadlock are shown.
const maxRing = 10

// deadlocks finds deadlocks. No thread has run since, so one look proves them.
func deadlocks(d *profile.Dump, _ *postmortem.Facts, name string) *profile.Finding {
	found := contention.New(d.Threads).Deadlocks
	if len(found) == 0 {
		return nil
	}
	f := &profile.Finding{ID: profile.Deadlocked, Severity: profile.Critical, Next: "goprof locks --core " + name}
	in := 0
	for _, cycle := range found {
		in += len(cycle)
		for _, i := range cycle {
			th := &d.Threads[i]
			if w := th.WaitsFor; w != nil && len(f.Evidence) < maxRing {
				f.Evidence = append(f.Evidence, fmt.Sprintf("%s waits for %s", th.Ref(), w.Text()))
			}
		}
	}
	f.Claim = fmt.Sprintf("%d threads waited for each other, for ever: a deadlock.", in)
	if in == 1 {
		f.Claim = "A thread waited for itself, for ever: a deadlock."
	}
	if len(found) > 1 {
		f.Claim = fmt.Sprintf("%d threads waited for each other, for ever: %d deadlocks.", in, len(found))
	}
	return f
}

const (
	// fullHeap is the part of the heap that must be in use before the heap counts as full. It is the same for a live JVM
	// (package triage). A healthy heap may be full just before a collection. So a full heap is a finding only in three
	// cases: the program has met an OutOfMemoryError; the JVM died while all threads were stopped for a collection; or
	// another process ended the JVM by a signal. A watchdog sends such a signal to a JVM that collects all the time and
	// does not answer. For all other cores, heap-full is listed as not known.
	fullHeap = 0.9
	// fullCode and roomy have the same values as in package triage.
	fullCode, roomy = 0.97, 0.75
)

func heapFull(d *profile.Dump, f *postmortem.Facts, _ string) *profile.Finding {
	share, known := full(f.Heap.Heap.Used, f.Heap.Heap.Max)
	oom := f.OutOfMemory.Or(0)
	sent := isSent(d)
	if !known || share < fullHeap || oom == 0 && !d.Core.Collecting && !sent {
		return nil
	}
	found := &profile.Finding{ID: profile.HeapFull, Severity: profile.Critical,
		Claim:    fmt.Sprintf("The heap was full: %d %% of it were in use.", int(share*100)),
		Evidence: []string{heapText(d)}, Next: "a larger -Xmx; -XX:+HeapDumpOnOutOfMemoryError for what fills it"}
	if n, ok := f.Heap.Collections.Get(); ok {
		found.Evidence = append(found.Evidence, fmt.Sprintf("%d collections since the start", n))
	}
	switch {
	case oom > 0:
		found.Evidence = append(found.Evidence, fmt.Sprintf("%d OutOfMemoryErrors so far", oom))
	case d.Core.Collecting:
		found.Severity = profile.Warning
		found.Evidence = append(found.Evidence, "all threads stood still for a collection")
	default:
		found.Severity = profile.Warning
		found.Claim = fmt.Sprintf("The heap was nearly full when the signal came: %d %% of it were in use.", int(share*100))
		found.Evidence = append(found.Evidence, "whether a collection would have freed it, one moment does not show")
	}
	return found
}

// isSent reports whether another process ended this one by a signal.
func isSent(d *profile.Dump) bool {
	s := d.Core.Signal
	return s != nil && d.Core.Cause == nil && sentCodes[s.Why] != "" && s.Sender != d.PID
}

func codeFull(_ *profile.Dump, f *postmortem.Facts, _ string) *profile.Finding {
	used, limit, refused := uint64(0), uint64(0), uint64(0)
	for _, part := range f.Code {
		u, ok := part.Used.Get()
		m, ok2 := part.Max.Get()
		if !ok || !ok2 {
			return nil
		}
		used, limit, refused = used+u, limit+m, refused+part.Refused.Or(0)
	}
	share, known := full(maybe.Known(used), maybe.Known(limit))
	off := !f.Compiling.Or(true) && (refused > 0 || share >= roomy)
	if !known || !off && share < fullCode {
		return nil
	}
	found := &profile.Finding{ID: profile.CodeCacheFull, Severity: profile.Critical,
		Claim: "The code cache was full: new code found no room.",
		Evidence: []string{fmt.Sprintf("%d of %d KiB were used (%d %%); no room was found %d times", used>>10, limit>>10,
			int(share*100), refused)}, Next: "a larger -XX:ReservedCodeCacheSize at the next start"}
	if off {
		found.Claim = "The code cache was full, and the JVM had stopped its compilers: new code ran in the interpreter."
	}
	return found
}

// full returns the used part of a limit.
func full(used, limit maybe.Value[uint64]) (float64, bool) {
	u, ok := used.Get()
	m, ok2 := limit.Get()
	if !ok || !ok2 || m == 0 {
		return 0, false
	}
	return float64(u) / float64(m), true
}

func heapText(d *profile.Dump) string {
	c := d.Core
	text := fmt.Sprintf("heap: %s, %d MiB used, %d MiB committed", c.Collector, c.HeapUsed>>20, c.HeapCommitted>>20)
	if c.HeapMax > 0 {
		text += fmt.Sprintf(", at most %d MiB", c.HeapMax>>20)
	}
	return text
}

// notes returns lines about the process and its state at the end.
func notes(d *profile.Dump, f *postmortem.Facts) (lines []string) {
	if d.Core.HeapUsed > 0 {
		lines = append(lines, heapText(d))
	}
	if d.Core.Collecting {
		lines = append(lines, "all threads stood still for a collection")
	}
	if n := f.Overflows.Or(0); n > 0 {
		lines = append(lines, fmt.Sprintf("%d StackOverflowErrors so far", n))
	}
	java, cut := 0, 0
	for i := range d.Threads {
		t := &d.Threads[i]
		if t.Java {
			java++
		}
		if t.Virtual == nil && t.Stack.Truncated != profile.Whole {
			cut++
		}
	}
	lines = append(lines, fmt.Sprintf("%d threads, %d of them Java's", len(d.Threads), java))
	if v := d.Virtual; v != nil && v.Seen > 0 {
		lines = append(lines, fmt.Sprintf("%d virtual threads, %d of them not carried by a thread", v.Seen, v.Shown))
	}
	for _, u := range d.Core.Unproven {
		lines = append(lines, fmt.Sprintf("%s was read in place of what the core lacks. It has no build id: only that "+
			"%d %% of it agree says that it is the file that was mapped", u.Path, u.Percent))
	}
	lines = append(lines, poolNotes(d)...)
	if cut > 0 {
		lines = append(lines, fmt.Sprintf("%d stacks could not be walked to their roots", cut))
	}
	return lines
}

const (
	// poolOf and stuckShare have the same values as in package triage: the least number of threads in a pool, and the
	// part of a pool that must wait.
	poolOf     = 3
	stuckShare = 0.9
)

// poolNotes names the pools in which nearly all threads waited inside their tasks. One moment does not show whether
// that was normal.
func poolNotes(d *profile.Dump) (lines []string) {
	for _, p := range pools.Of(d.Threads, func(t *profile.ThreadDump) bool { return t.Java && !t.System || t.TID == 0 }) {
		for on := pools.ForResource; on <= pools.ForPeer; on++ {
			if n := p.Count(on); n >= poolOf && float64(n) >= stuckShare*float64(len(p.Members)) {
				lines = append(lines, fmt.Sprintf("%d of %d threads %s: each %s", n, len(p.Members), p.Name, on))
			}
		}
	}
	return lines
}

// judged are the rules that need only a core.
var judged = map[profile.FindingID]bool{profile.Deadlocked: true, profile.HeapFull: true, profile.CodeCacheFull: true}

// elsewhere are the rules whose facts are not in the memory of a process. All other rules need two moments.
var elsewhere = map[profile.FindingID]bool{profile.FDLimit: true, profile.CPUThrottled: true, profile.CPUShort: true,
	profile.Swapping: true, profile.WaitingRemote: true}

// unknown lists each rule that could not be judged.
func unknown(d *profile.Dump, f *postmortem.Facts) (list []profile.Unknown) {
	for _, id := range profile.FindingIDs {
		switch {
		case elsewhere[id]:
			list = append(list, profile.Unknown{ID: id, Why: "a core holds nothing of it"})
		case !judged[id]:
			list = append(list, profile.Unknown{ID: id, Why: "a core is one moment"})
		}
	}
	if _, ok := full(f.Heap.Heap.Used, f.Heap.Heap.Max); !ok {
		list = append(list, profile.Unknown{ID: profile.HeapFull, Why: "the heap's size or its limit could not be read"})
	} else if share, _ := full(f.Heap.Heap.Used, f.Heap.Heap.Max); share >= fullHeap && heapFull(d, f, "") == nil {
		list = append(list, profile.Unknown{ID: profile.HeapFull, Why: fmt.Sprintf("%d %% of the heap were in use: "+
			"whether a collection would have freed it, one moment does not show", int(share*100))})
	}
	if !codeKnown(f) {
		list = append(list, profile.Unknown{ID: profile.CodeCacheFull, Why: "the code cache could not be read"})
	}
	if why := deadlocksUnknown(d); why != "" {
		list = append(list, profile.Unknown{ID: profile.Deadlocked, Why: why})
	}
	return list
}

// deadlocksUnknown returns why a deadlock may have been missed, or "" if all waits are known.
func deadlocksUnknown(d *profile.Dump) string {
	if d.NoLocks != "" {
		return "what threads hold and wait for could not be read: " + d.NoLocks
	}
	if n := profile.Unconfirmed(d.Threads); n > 0 {
		return fmt.Sprintf("a collector moved objects: what %d threads waited for is not certain", n)
	}
	if why := d.Waits.Unread(); why != "" {
		return why
	}
	n := 0
	for i := range d.Threads {
		if w := d.Threads[i].WaitsFor; w != nil && w.Ownerless() {
			n++
		}
	}
	if n > 0 {
		return fmt.Sprintf("which threads had the locks that %d threads waited for is not known", n)
	}
	return ""
}

// codeKnown reports whether the size and the limit of the code cache are known.
func codeKnown(f *postmortem.Facts) bool {
	for _, part := range f.Code {
		if !part.Used.IsKnown() || !part.Max.IsKnown() {
			return false
		}
	}
	return len(f.Code) > 0
}
