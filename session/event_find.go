//go:build linux

package session

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"goprof/process"
	"goprof/profile"
	"goprof/sampler/events"
	"goprof/sampler/ring"
)

type EventError struct {
	Name   string
	Why    string
	Remedy string
	Err    error // a ring.Error: the kernel refuses it; diagnose.Host.ExplainEvent finds out why
}

func (e *EventError) Error() string { return "event " + e.Name + ": " + e.Why }
func (e *EventError) Unwrap() error { return e.Err }

// FindEvent finds an event by its name: a preset, "library:function", "group:tracepoint", or "rNNN", a counter of the
// CPU. every is the mean amount between two samples; 0 is the default. The caller must close the plan.
func (s *Session) FindEvent(name string, every uint64) (*EventPlan, error) {
	return Ask(s, func() (*EventPlan, error) { return s.findEvent(name, every) })
}

// findEvent finds an event by its name: a preset, a raw counter, a function, a marker or a tracepoint.
func (s *Session) findEvent(name string, every uint64) (*EventPlan, error) {
	for i := range eventPresets {
		if p := &eventPresets[i]; p.Name == name {
			return s.preset(p, every)
		}
	}
	if n, ok := rawCounter(name); ok {
		p := counterPreset(name, "", max(every, 1_000_000), unix.PERF_TYPE_RAW, n)
		return s.preset(&p, every)
	}
	if marker, is := strings.CutPrefix(name, markerPrefix); is {
		provider, marker, _ := strings.Cut(marker, ":")
		p := EventPreset{Name: name, ways: []presetWay{{in: provider, marked: true,
			probes: []presetProbe{{symbol: marker}}}}}
		return s.preset(&p, every)
	}
	group, symbol, ok := strings.Cut(name, ":")
	if !ok || group == "" || symbol == "" {
		return nil, s.unknownEvent(name)
	}
	p := EventPreset{Name: name, ways: []presetWay{{in: group, probes: []presetProbe{{symbol: symbol}}}}}
	plan, err := s.preset(&p, every)
	if err == nil || !errors.Is(err, process.ErrNoImage) {
		return plan, err
	}
	if id, ok := tracepoint(group, symbol); ok {
		p = counterPreset(name, "", 1, unix.PERF_TYPE_TRACEPOINT, id)
		return s.preset(&p, every)
	}
	if bad, ok := errors.AsType[*EventError](err); ok {
		bad.orTracepoint()
	}
	return nil, err
}

// orTracepoint adds the reason why the event is no tracepoint either.
func (e *EventError) orTracepoint() {
	missing := TracepointsError()
	if missing == nil {
		return
	}
	e.Why += "; if it is a tracepoint: " + missing.Why
	if missing.Remedy != "" {
		e.Remedy += "; or for a tracepoint: " + missing.Remedy
	}
}

// rawCounter returns the number of a counter of the CPU: "r1a2", as perf writes it. A name of letters only ("read",
// "rad") is a word, not a number. As a number it is written "r0xead".
func rawCounter(name string) (n uint64, ok bool) {
	raw, ok := strings.CutPrefix(name, "r")
	if !ok || !strings.ContainsAny(raw, "0123456789") {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(raw, "0x"), 16, 64)
	return n, err == nil
}

// unknownEvent returns the error that there is no event of this name, with the name that may have been meant.
func (s *Session) unknownEvent(name string) error {
	e := &EventError{Name: name, Why: "there is no event of that name",
		Remedy: "goprof events lists those that have names; others are library:function, usdt:provider:name or " +
			"group:tracepoint"}
	for _, in := range []string{libc, libjvm} {
		if found, err := s.Process.Functions(in, name); err == nil && len(found) > 0 {
			e.Remedy = "--event " + in + ":" + name + ", the function"
			break
		}
	}
	return e
}

// MayNeedProbes reports whether an event of this name may need probes. It needs no process. Only counters of the kernel
// and the CPU with names of their own need none.
func MayNeedProbes(name string) bool {
	for i := range eventPresets {
		if p := &eventPresets[i]; p.Name == name {
			return slices.ContainsFunc(p.ways, func(w presetWay) bool { return w.counter == nil })
		}
	}
	_, raw := rawCounter(name)
	return !raw
}

// preset plans the first of its ways that works. If none does, it returns the first failure, which is the most useful
// one.
func (s *Session) preset(p *EventPreset, every uint64) (*EventPlan, error) {
	every = cmp.Or(every, p.Every)
	var first error
	for i := range p.ways {
		plan := &EventPlan{Name: p.Name, Unit: p.Unit, Note: p.ways[i].note}
		err := s.try(plan, &p.ways[i], every)
		if err == nil {
			return plan, nil
		}
		plan.Close()
		first = cmp.Or(first, err)
		if p.ways[i].pairs != nil && !errors.Is(err, process.ErrNoImage) {
			return nil, s.explainEvent(p.Name, err) // the next way would probe a malloc that the process does not use
		}
	}
	return nil, s.explainEvent(p.Name, first)
}

// try plans a preset in one of its ways, and tests whether goprof may record it in this way.
func (s *Session) try(plan *EventPlan, way *presetWay, every uint64) error {
	if c := way.counter; c != nil {
		plan.list = []events.Event{{Name: plan.Name, Type: c.kind, Config: c.config, Interval: every}}
		plan.parts = []eventPart{{of: plan.kind()}}
		return events.TryCounter(s.Process.PID(), c.kind, c.config)
	}
	if way.pairs != nil {
		return s.tryPairs(plan, way, every)
	}
	if way.io {
		return s.tryIO(plan, every)
	}
	for i := range way.probes {
		p := &way.probes[i]
		found, err := s.places(way, p.symbol)
		if err != nil {
			return err
		}
		e := events.Event{Name: plan.Name, Amount: p.amount, Times: p.times, Given: p.given, Interval: every,
			Buffer: p.buffer, Object: p.object, Copies: p.copies, Retired: s.retired(p)}
		for _, f := range found {
			var file *os.File
			if file, err = s.Process.OpenFunction(f); err != nil {
				break
			}
			e.Probes = append(e.Probes, events.Probe{File: file, Offset: f.Offset})
		}
		part := p.eventPart
		part.of = plan.kind()
		plan.list, plan.parts = append(plan.list, e), append(plan.parts, part)
		if err != nil {
			return err // Close closes the files that were opened
		}
	}
	return events.TryProbes()
}

// retired returns how a probe finds the buffer that a thread has just given up. It is nil if this JVM does not show
// that.
func (s *Session) retired(p *presetProbe) *events.Retired {
	if p.buffer == events.NoBuffer || p.at == 0 {
		return nil
	}
	allocated, collections, ok := s.VM.AllocationCounts()
	if !ok {
		return nil
	}
	return &events.Retired{At: p.at, Thread: p.thread, Allocated: int(allocated), Moment: collections}
}

// places finds the addresses for the probes of a function or a marker.
func (s *Session) places(way *presetWay, name string) ([]process.Function, error) {
	if way.marked {
		return s.Process.Marker(way.in, name)
	}
	return s.Process.Functions(way.in, name)
}

// markerPrefix begins the names of events that are markers: usdt:hotspot:gc__begin.
const markerPrefix = "usdt:"

// MarkerEvent is a marker as --event names it.
type MarkerEvent struct {
	Name    string
	Guarded bool // it has a semaphore, and cannot be recorded
}

// MarkerEvents returns the markers of all libraries of the process.
func (s *Session) MarkerEvents() (list []MarkerEvent, err error) {
	all, err := Ask(s, s.Process.Markers)
	for i := range all {
		m := &all[i]
		list = append(list, MarkerEvent{markerPrefix + m.Provider + ":" + m.Name, m.Guarded})
	}
	return list, err
}

// WhyGuarded says why a marker with a semaphore cannot be recorded.
const WhyGuarded = "the library comes by only where a counter in its memory is not 0 (a semaphore), and goprof " +
	"writes nothing into a process"

func (p *EventPlan) kind() *profile.EventKind { return &profile.EventKind{Name: p.Name, Unit: p.Unit} }

// explainEvent returns the error that says why an event cannot be recorded, with the remedy.
func (s *Session) explainEvent(name string, err error) error {
	e := &EventError{Name: name, Err: err, Why: err.Error()}
	switch {
	case errors.Is(err, process.ErrNoSymbol):
		e.Why = strings.TrimPrefix(err.Error(), "process: ")
		e.Remedy = "a JVM whose libjvm.so has its symbols (.symtab): Debian's from 11 on, Temurin, or its debug package"
	case errors.Is(err, process.ErrNoImage):
		e.Why = "the process has loaded no such library (compiled Java lies in anonymous memory, where no probe can be set)"
		e.Remedy = fmt.Sprintf("grep -o '/.*so.*' /proc/%d/maps | sort -u", s.Process.PID())
	case errors.Is(err, process.ErrNoMarker):
		e.Why = "no library of the process has a marker of that name"
		e.Remedy = fmt.Sprintf("goprof events --usdt %d lists them", s.Process.PID())
	case errors.Is(err, process.ErrGuarded):
		e.Why = WhyGuarded
	case errors.Is(err, process.ErrIndirect):
		e.Why = "it is an indirect function: its code was chosen when the program was loaded"
	case errors.Is(err, process.ErrNoEnds):
		e.Why = strings.TrimPrefix(err.Error(), "process: ") + "; what a call brings is known at its end only"
		e.Remedy = "--event malloc, which says who allocates"
	case errors.Is(err, ring.ErrNested):
		e.Why = "goprof is in a PID namespace, and the kernel's programs know processes by their numbers outside"
		e.Remedy = "on the host, or with --pid=host: goprof record --event " + name
	case errors.Is(err, process.ErrTooLong):
		e.Why = "more functions have that name than goprof sets probes for"
	case errors.Is(err, events.ErrNoCounter):
		e.Why = "this machine has no such counter (virtual machines mostly have none of the CPU's)"
		e.Remedy = "--event page-faults, or no --event for CPU time"
	}
	return e
}

// tracefs are the folders where the kernel describes its tracepoints, if they are mounted.
var tracefs = []string{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}

// lockdown shows whether the kernel is locked down: "none integrity [confidentiality]". A kernel that is locked down
// for confidentiality leaves tracefs empty (fs/tracefs/inode.c, tracefs_create_dir).
var lockdown = "/sys/kernel/security/lockdown"

// TracepointsError returns the reason why no tracepoint can be recorded. It is nil if the kernel's tracepoints can be
// listed.
func TracepointsError() *EventError {
	for _, root := range tracefs {
		if _, err := os.Stat(root + "/events"); err == nil {
			return nil
		}
	}
	if _, err := os.Stat(tracefs[0] + "/events"); errors.Is(err, fs.ErrPermission) { // its usual mode is 0700
		return &EventError{Name: "group:tracepoint", Why: "only root may read tracefs", Remedy: "sudo goprof ..."}
	}
	if b, _ := os.ReadFile(lockdown); strings.Contains(string(b), "[confidentiality]") {
		return &EventError{Name: "group:tracepoint", Why: "the kernel is locked down for confidentiality, and shows no " +
			"tracepoints"}
	}
	return &EventError{Name: "group:tracepoint", Why: "tracefs is not mounted, or may not be read",
		Remedy: "mount -t tracefs nodev " + tracefs[0]}
}

func tracepoint(group, name string) (uint64, bool) {
	if strings.ContainsAny(group+name, "/.") {
		return 0, false
	}
	for _, root := range tracefs {
		b, err := os.ReadFile(root + "/events/" + group + "/" + name + "/id")
		if err != nil {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 32)
		return n, err == nil
	}
	return 0, false
}

// EventState says whether an event can be recorded here.
type EventState struct {
	Preset EventPreset
	Note   string
	Err    error
}

// Events returns all presets, and whether each can be recorded for this process.
func (s *Session) Events() (list []EventState) {
	for _, p := range eventPresets {
		plan, err := s.FindEvent(p.Name, 0)
		state := EventState{Preset: p, Err: err}
		if err == nil {
			state.Note = plan.Note
			plan.Close()
		}
		list = append(list, state)
	}
	return list
}
