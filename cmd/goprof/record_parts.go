//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/internal/recorder"
	"goprof/output/format"
	"goprof/profile"
	"goprof/session"
)

// partModes maps the parts other than events to their modes.
var partModes = map[string]session.Mode{"cpu": session.CPUMode, "wall": session.WallMode}

func modeOfPart(name string) (session.Mode, bool) {
	if m, is := eventModes[name]; is {
		return m.mode, true
	}
	m, is := partModes[name]
	return m, is
}

func namesWaits(event string) bool {
	return slices.ContainsFunc(session.SplitEvents(event), func(name string) bool {
		m, is := modeOfPart(name)
		return is && m == session.WaitingMode
	})
}

// takeParts removes the parts other than events from the list of events.
func (f *recordFlags) takeParts(cmd *cobra.Command) error {
	var events []session.AskedEvent
	for i, e := range f.asked {
		if _, is := modeOfPart(e.Name); !is {
			events = append(events, e)
			continue
		}
		if e.Every != 0 {
			return noAmount(cmd, e.Name)
		}
		if i == 0 {
			f.lead = e.Name
		}
		f.others = append(f.others, e.Name)
	}
	f.asked = events
	if slices.Contains(f.others, "lock") && slices.Contains(f.others, "off-cpu") {
		return usageError(cmd, "--event off-cpu has the waits for locks, too: leave out lock",
			with("event", "cpu,off-cpu"))
	}
	return nil
}

func noAmount(cmd *cobra.Command, name string) error {
	return usageError(cmd, fmt.Sprintf("--event %s has no amount behind it: its samples are times", name))
}

// checkParts refuses flags that do not go with several parts.
func (f *recordFlags) checkParts(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	cpu := slices.Contains(f.others, profile.ModeCPU)
	perf := f.all.Kernel || f.engine == string(session.PerfEngine)
	switch {
	case f.Files.As != format.JFR:
		return severalInto(cmd, f.Files.As)
	case f.every != "":
		return usageError(cmd, everyHelp, without("every"))
	case !cpu && (given("rate") || given("interval")):
		return usageError(cmd, "--rate and --interval are for CPU time; of events --every says how many become samples",
			without("rate", "interval"))
	case given("weight"):
		return usageError(cmd, "--weight is for one --event or mode; each part has its own", without("weight"))
	case f.all.Kernel && !cpu && len(f.asked) == 0:
		return usageError(cmd, "--kernel is for CPU time and events: of threads that wait, no look shows the kernel's part",
			without("kernel"))
	case f.all.Kernel && cpu && given("engine") && f.engine != string(session.PerfEngine):
		return usageError(cmd, "--kernel needs --engine perf: only the kernel itself sees its part of a stack",
			with("engine", "perf"))
	case cpu && perf && f.maxOverhead > 0:
		return usageError(cmd, "--max-overhead is for --engine ptrace: perf_event does not say what a sample costs",
			without("max-overhead"))
	}
	return nil
}

// parts returns the parts of the recording. The first one leads.
func (f *recordFlags) parts(weight profile.Weight) []recorder.Part {
	if len(f.others) == 0 {
		one := f.part(session.Mode(f.mode))
		one.Weight, one.Events, one.States = weight, f.asked, wanted(f.chosen)
		return []recorder.Part{one}
	}
	var parts []recorder.Part
	for _, name := range f.others {
		parts = append(parts, f.modePart(name))
	}
	if len(f.asked) == 0 {
		return parts
	}
	var names []string
	for _, e := range f.asked {
		names = append(names, e.Name)
	}
	events := f.part("")
	events.Part, events.Events, events.Interval = strings.Join(names, ","), f.asked, 0
	if f.lead == "" {
		return append([]recorder.Part{events}, parts...)
	}
	return append(parts, events)
}

// part returns a part for a mode, with the options of all parts.
func (f *recordFlags) part(mode session.Mode) recorder.Part {
	p := recorder.Part{RecordOptions: f.all}
	p.Mode, p.Engine, p.Kernel = mode, session.EngineName(f.engine), f.all.Kernel && !mode.IsWall()
	// The JVM's own idle threads are kept if the user names threads.
	p.LeaveIdle = mode.IsWall() && mode != session.TTSPMode && !f.allThreads && f.wants.only == ""
	return p
}

// modePart returns the part of a mode, with the mode's defaults.
func (f *recordFlags) modePart(name string) recorder.Part {
	mode, _ := modeOfPart(name)
	p := f.part(mode)
	p.Part = name
	if mode == session.CPUMode {
		if f.all.Kernel {
			p.Engine = session.PerfEngine
		}
		return p
	}
	p.Interval = intervalOf(usualRate(mode, 0))
	if wait, is := eventModes[name]; is {
		p.Weight, p.States = profile.WallTime, wanted(chosenStates(wait.states))
		if !f.engineGiven {
			p.Engine = wait.engine
		}
	}
	return p
}

// wanted returns a filter of states, or nil if all are wanted.
func wanted(states map[profile.State]bool) func(profile.State) bool {
	if len(states) == 0 {
		return nil
	}
	return func(s profile.State) bool { return states[s] }
}

// chosenStates returns the thread states of an event that is a mode.
func chosenStates(names []string) map[profile.State]bool {
	chosen := map[profile.State]bool{}
	for _, name := range names {
		if s, err := profile.ParseState(name); err == nil {
			chosen[s] = true
		}
	}
	return chosen
}
