package triage

import (
	"sort"

	"goprof/profile"
	"goprof/triage/vitals"
)

type suspicion struct {
	// sure is the likelihood, from 0 to 1, that this is the fault. Findings are sorted by it. It is 1 for facts that
	// the JVM or the kernel reports beyond doubt. For a share of time it is less than 0.9, and grows with the share
	// from its threshold on (scaled).
	sure     float64
	severity profile.Severity
	claim    string
	evidence []string
	next     string
}

// rules holds a function for each finding. A function returns nil if it finds nothing. Each rule is in its own file.
var rules = map[profile.FindingID]func(*exam) *suspicion{
	profile.CPUHot:          cpuHot,
	profile.GCBusy:          gcBusy,
	profile.HeapFull:        heapFull,
	profile.Deadlocked:      deadlock,
	profile.LockContention:  lockContention,
	profile.WaitingRemote:   waitingRemote,
	profile.CPUThrottled:    cpuThrottled,
	profile.CPUShort:        cpuShort,
	profile.Swapping:        swapping,
	profile.CodeCacheFull:   codeCacheFull,
	profile.SafepointStall:  safepointStall,
	profile.Exceptions:      exceptions,
	profile.ClassLoading:    classLoading,
	profile.ThreadLeak:      threadLeak,
	profile.FDLimit:         fdLimit,
	profile.FinalizerBehind: finalizerBehind,
	profile.Pinned:          pinned,
	profile.PoolStuck:       poolStuck,
	profile.NativeGrowth:    nativeGrowth,
	profile.DirectFull:      directFull,
	profile.MallocKept:      mallocKept,
	profile.MemoryLimit:     memoryLimit,
	profile.CompilerBehind:  compilerBehind,
	profile.StandsStill:     standsStill,
}

// exam is a running judgement.
type exam struct {
	*Evidence
	rule    profile.FindingID // the rule that runs now
	unknown []profile.Unknown
	notes   []string
	roles   map[int]vitals.Role
	work    work
	waits   map[int]*waits
	first   *vitals.Reading // never nil
	last    *vitals.Reading
}

// Judge applies all rules to the evidence.
func Judge(e *Evidence) profile.Triage {
	x := newExam(e)
	type verdict struct {
		sure float64
		profile.Finding
	}
	var verdicts []verdict
	for _, id := range profile.FindingIDs {
		x.rule = id
		if e.Stopped && !judgesStill[id] {
			x.cannotTell(e.standstill())
			continue
		}
		if s := rules[id](x); s != nil {
			verdicts = append(verdicts, verdict{s.sure,
				profile.Finding{ID: id, Severity: s.severity, Claim: s.claim, Evidence: s.evidence, Next: s.next}})
		}
	}
	sort.SliceStable(verdicts, func(i, j int) bool { return verdicts[i].sure > verdicts[j].sure })
	t := profile.Triage{Findings: []profile.Finding{}, Notes: []string{}, Unknown: x.unknown}
	for _, v := range verdicts {
		t.Findings = append(t.Findings, v.Finding)
	}
	t.Notes = append(t.Notes, x.notes...)
	if e.Outdated != "" {
		t.Notes = append(t.Notes, e.Outdated)
	}
	if t.Unknown == nil {
		t.Unknown = []profile.Unknown{}
	}
	return t
}

// judgesStill are the rules that also apply to a process that stands still. A stopped or frozen process uses no CPU and
// collects nothing, so the other rules cannot judge it.
var judgesStill = map[profile.FindingID]bool{profile.Deadlocked: true, profile.StandsStill: true,
	profile.FDLimit: true, profile.CodeCacheFull: true, profile.DirectFull: true, profile.MallocKept: true,
	profile.MemoryLimit: true}

func newExam(e *Evidence) *exam {
	x := &exam{Evidence: e, roles: map[int]vitals.Role{}, first: &vitals.Reading{}, last: &vitals.Reading{}}
	if n := len(e.Readings); n > 0 {
		x.first, x.last = e.Readings[0], e.Readings[n-1]
	}
	for _, r := range e.Readings {
		for i := range r.Threads {
			// A reading may not know a role, and a thread that begins or ends is in no list of the JVM.
			t := &r.Threads[i]
			if t.Role != "" && x.roles[t.TID] != vitals.Application {
				x.roles[t.TID] = t.Role
			}
		}
	}
	x.work = x.workOf(e.CPU)
	x.waits = x.waitsOf(e.Wall)
	return x
}

// cannotTell notes that a fact that the rule needs is missing.
func (x *exam) cannotTell(why string) *suspicion {
	x.unknown = append(x.unknown, profile.Unknown{ID: x.rule, Why: why})
	return nil
}

// scaled returns how sure a rule is of a share that is above its threshold: least at the threshold, most for a share of
// 1.
func scaled(share, threshold, least, most float64) float64 {
	if threshold >= 1 {
		return most
	}
	part := min(max((share-threshold)/(1-threshold), 0), 1)
	return least + part*(most-least)
}
