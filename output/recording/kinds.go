package recording

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"goprof/output/jfr"
	"goprof/profile"
)

// The events of the JDK and of async-profiler that are samples of some kind.
const (
	executionSample = "jdk.ExecutionSample"
	nativeSample    = "jdk.NativeMethodSample"
	cpuTimeSample   = "jdk.CPUTimeSample"
	wallSample      = "profiler.WallClockSample"
	allocSample     = "jdk.ObjectAllocationSample"
	allocInTLAB     = "jdk.ObjectAllocationInNewTLAB"
	allocOutside    = "jdk.ObjectAllocationOutsideTLAB"
	monitorEnter    = "jdk.JavaMonitorEnter"
	threadPark      = "jdk.ThreadPark"
	exceptionThrow  = "jdk.JavaExceptionThrow"
	classDefine     = "jdk.ClassDefine"
)

// EventGroups are the possible values of Options.Event besides names of events.
var EventGroups = []string{"cpu", "native", "wall", "alloc", "lock", "park", profile.EventIO}

// modeOf is the mode of a recording of such events. For events of goprof's own kinds see mode.
var modeOf = map[string]string{
	executionSample: profile.ModeCPU, nativeSample: profile.ModeCPU, cpuTimeSample: profile.ModeCPU,
	wallSample: profile.ModeWall, monitorEnter: "lock", threadPark: "lock",
}

// otherKinds are events of other recorders that goprof has under another name.
var otherKinds = func() map[string]*profile.EventKind {
	alloc := &profile.EventKind{Name: profile.EventAlloc, Unit: profile.Bytes}
	return map[string]*profile.EventKind{allocSample: alloc, allocInTLAB: alloc, allocOutside: alloc,
		exceptionThrow: {Name: profile.EventExceptions}, classDefine: {Name: profile.EventClassLoad}}
}()

// IsSample reports whether goprof has rules of its own for reading the events of a name, or of several, as samples.
func IsSample(event string) bool {
	for name := range strings.SplitSeq(event, ",") {
		if slices.Contains(EventGroups, strings.ToLower(name)) || modeOf[name] != "" || otherKinds[name] != nil {
			return true
		}
	}
	return strings.Contains(event, ",")
}

// kind returns the event for samples of a type. It is nil for CPU time, for wall-clock time, and for types that are not
// goprof's.
func (c *contents) kind(event string) *profile.EventKind {
	if kind := c.kinds[event]; kind != nil {
		return kind
	}
	return otherKinds[event]
}

func (c *contents) mode(event string) string {
	if _, is := jfr.IOTypes[event]; is {
		return profile.EventIO
	}
	if kind := c.kind(event); kind != nil {
		return kind.Name
	}
	if c.waits[event] != "" {
		return profile.ModeWall
	}
	return modeOf[event]
}

// weights returns the possible weights of events, the default first.
func (c *contents) weights(event string) []profile.Weight {
	kind := c.kind(event)
	switch {
	case kind != nil && kind.Unit == profile.Samples:
		return []profile.Weight{profile.Samples}
	case kind != nil:
		return []profile.Weight{kind.Unit, profile.Samples}
	}
	switch c.mode(event) {
	case profile.ModeCPU:
		if c.ours || event == cpuTimeSample {
			return []profile.Weight{profile.Samples, profile.CPUTime}
		}
		return []profile.Weight{profile.Samples}
	case profile.ModeWall:
		if c.ours {
			return []profile.Weight{profile.Samples, profile.WallTime, profile.CPUTime}
		}
		return []profile.Weight{profile.Samples, profile.WallTime}
	case "lock", profile.EventIO:
		return []profile.Weight{profile.WallTime, profile.Samples}
	}
	return []profile.Weight{profile.Samples, profile.WallTime}
}

// contents describes the events of a JFR file.
type contents struct {
	counts map[string]int64              // of all events
	stacks map[string]bool               // whether they have a stack trace
	ours   bool                          // goprof wrote it
	kinds  map[string]*profile.EventKind // of goprof's samples of events, by type
	waits  map[string]string             // names of wall-clock parts by type, if a goprof file has several parts
	first  []string                      // types in the order of --event
}

func (c *contents) has(event string) bool { return c.counts[event] > 0 && c.stacks[event] }

func (c *contents) choose(want string) ([]string, error) {
	if want == "" {
		return c.usual()
	}
	var chosen []string
	for name := range strings.SplitSeq(want, ",") {
		found := c.asked(name)
		if found == nil {
			found = c.group(name)
		}
		if found == nil {
			found = c.named(name)
		}
		if len(found) == 0 && !slices.Contains(EventGroups, strings.ToLower(name)) {
			return nil, c.lacks(name)
		}
		chosen = append(chosen, found...)
	}
	if len(chosen) == 0 {
		return nil, c.lacks(want)
	}
	slices.Sort(chosen)
	chosen = slices.Compact(chosen)
	for _, event := range chosen {
		if c.mode(event) != c.mode(chosen[0]) {
			return nil, &Lacks{Problem: fmt.Sprintf("%s and %s cannot be counted together", chosen[0], event),
				Remedy: "--event with one of them"}
		}
	}
	return chosen, nil
}

// usual returns the events to read if the user does not choose. It takes the first of these that the file has: the
// event that record named first, CPU time, wall-clock time, the most frequent event.
func (c *contents) usual() ([]string, error) {
	if i := slices.IndexFunc(c.first, c.has); i >= 0 {
		if c.mode(c.first[i]) == profile.ModeCPU {
			return c.group(profile.ModeCPU), nil
		}
		return c.first[i : i+1], nil
	}
	for _, group := range EventGroups {
		if found := c.group(group); len(found) > 0 {
			return found, nil
		}
	}
	if all := c.withStacks(); len(all) > 0 {
		return all[:1], nil
	}
	return nil, c.lacks("")
}

// group returns the events of a group that are in the file. It is nil if there are none.
func (c *contents) group(name string) []string {
	some := func(events ...string) []string {
		return slices.DeleteFunc(events, func(e string) bool { return !c.has(e) })
	}
	first := func(events ...string) []string {
		found := some(events...)
		return found[:min(1, len(found))]
	}
	switch strings.ToLower(name) {
	case "cpu":
		// In the JDK's samples of native code, threads mostly wait. In goprof's, they used CPU time.
		if c.ours {
			return some(executionSample, nativeSample)
		}
		return first(cpuTimeSample, executionSample) // the second one is biased, and has no native code
	case "native":
		return some(nativeSample)
	case "wall":
		return some(wallSample)
	case "alloc":
		if tlab := some(allocInTLAB, allocOutside); len(tlab) > 0 {
			return tlab
		}
		return some(allocSample)
	case "lock":
		return some(monitorEnter)
	case "park":
		return some(threadPark)
	case profile.EventIO:
		return some(slices.Sorted(maps.Keys(jfr.IOTypes))...)
	}
	return nil
}

// asked returns the types for the name of an event in record --event.
func (c *contents) asked(name string) []string {
	for _, event := range c.withStacks() {
		kind := c.kinds[event]
		wait := c.waits[event]
		if kind != nil && strings.EqualFold(kind.Name, name) || wait != "" && strings.EqualFold(wait, name) {
			return []string{event}
		}
	}
	return nil
}

// named returns the event with a name. The part of the name before its last dot may be missing.
func (c *contents) named(name string) (found []string) {
	for _, event := range c.withStacks() {
		last := event[strings.LastIndexByte(event, '.')+1:]
		if strings.EqualFold(event, name) || strings.EqualFold(last, name) {
			found = append(found, event)
		}
	}
	return found
}

// withStacks returns all events with a stack trace, the most frequent first.
func (c *contents) withStacks() []string {
	counts := maps.Clone(c.counts)
	maps.DeleteFunc(counts, func(event string, _ int64) bool { return !c.has(event) })
	return profile.ByCount(counts)
}

const maxListed = 8

// lacks returns the error for a file without events of this name. It lists the events that the file has.
func (c *contents) lacks(name string) error {
	var list []string
	for _, event := range c.withStacks() {
		if len(list) == maxListed {
			list = append(list, "...")
			break
		}
		list = append(list, fmt.Sprintf("%s (%d)", event, c.counts[event]))
	}
	what, has := "events of "+name, "events with stacks in it: "+strings.Join(list, ", ")
	if name == "" {
		what = "samples"
	}
	if len(list) == 0 {
		has = "no event in it has a stack"
	}
	e := &Lacks{Problem: fmt.Sprintf("there are no %s in it; %s", what, has)}
	if len(list) > 0 {
		e.Remedy = "--event " + c.withStacks()[0]
	}
	return e
}
