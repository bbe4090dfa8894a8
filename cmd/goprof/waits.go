//go:build linux

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/internal/recorder"
	"goprof/output"
	"goprof/profile"
	"goprof/sampler/offcpu"
	"goprof/session"
)

const waitHelp = `--event off-cpu, lock and ttsp are about waiting. off-cpu takes every wait of every thread from the
kernel's context switches, with its stack and its exact length. That needs CAP_PERFMON, or
kernel.perf_event_paranoid at 1 or less. Elsewhere goprof looks 20 times a second, as with --engine
ptrace. lock is the same for monitors and java.util.concurrent locks alone. Waits shorter than --min
are counted, and have no stack. --mode off-cpu and --mode ttsp are the same as --event off-cpu and
--event ttsp. --wakers adds what ended each wait: "[woken by]" and the stack of the thread, or the
kernel's reason; "goprof report --by waker" sums it up. It needs CAP_BPF, CAP_PERFMON and CAP_SYSLOG.
--chain also adds what had ended the waker's own wait, and so on: "goprof report --by chain".`

// defaultChain and mostChain are the default and the largest number of wakers above a wait with --chain.
const defaultChain, mostChain = 4, 16

func (f *recordFlags) addWaits(fs *pflag.FlagSet) {
	fs.DurationVar(&f.all.Min, "min", recorder.UsualMin,
		"with --event off-cpu, lock and io: leave out waits and calls that are shorter than this `time`: 1ms")
	fs.BoolVar(&f.all.Wakers, "wakers", false, "with --event off-cpu and lock: what ended each wait, with its stack")
	fs.IntVar(&f.all.Chain, "chain", 0, "--wakers, and the waker's own waker, up to so `many`: --chain=8")
	fs.Lookup("chain").NoOptDefVal = strconv.Itoa(defaultChain)
}

type eventMode struct {
	mode   session.Mode
	engine session.EngineName
	states []string
}

var eventModes = map[string]eventMode{
	"ttsp":    {mode: session.TTSPMode},
	"off-cpu": {mode: session.WaitingMode, engine: session.AutoEngine},
	"lock":    {session.WaitingMode, session.AutoEngine, []string{profile.Blocked.String(), profile.Parked.String()}},
}

func namesIO(event string) bool {
	return slices.ContainsFunc(session.SplitEvents(event), func(name string) bool {
		name, _, _ = strings.Cut(name, "=")
		return name == profile.EventIO
	})
}

// toMode sets the flags of a mode if --event or --mode names a kind of waiting. Call it before all other checks.
func (f *recordFlags) toMode(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	name := cmp.Or(f.event, f.mode)
	m, is := eventModes[name]
	if is && !given("weight") { // stacks are counted in time
		f.weight = profile.WallTime.String()
	}
	f.all.Wakers = f.all.Wakers || given("chain")
	wakers := "--wakers"
	if f.all.Chain > 0 {
		wakers = "--chain"
	}
	switch {
	case given("chain") && (f.all.Chain < 1 || f.all.Chain > mostChain):
		return usageError(cmd, fmt.Sprintf("--chain is from 1 to %d wakers", mostChain), without("chain"))
	case given("min") && f.all.Min < 0:
		return usageError(cmd, "--min is a time, not less than 0", without("min"))
	case !is && given("min") && !namesWaits(f.event) && !namesIO(f.event):
		return usageError(cmd, "--min is for --event off-cpu, lock and io", without("min"))
	case f.all.Wakers && m.mode != session.WaitingMode && !namesWaits(f.event):
		return usageError(cmd, wakers+" is for --event off-cpu and lock", without("wakers", "chain"))
	case f.all.Wakers && f.engine == string(session.PtraceEngine):
		return usageError(cmd, wakers+" takes what the kernel notes of wake-ups, and --engine ptrace does not ask it",
			without("engine"))
	case !is:
		return nil
	case f.event != "" && given("mode"):
		return usageError(cmd, "--event and --mode both say when a sample is taken: give one", without("mode"))
	case given("every"), given("alloc"), given("kernel"):
		return usageError(cmd, fmt.Sprintf("--every, --alloc and --kernel are for events that are counted; "+
			"of %s every wait counts: --min leaves out short ones", name), without("every", "alloc", "kernel"))
	case m.states != nil && given("state"):
		return usageError(cmd, "--event lock chooses states; with --event off-cpu --state chooses others",
			without("state"))
	}
	f.event, f.mode = "", string(m.mode)
	if m.states != nil {
		f.states = slices.Clone(m.states)
	}
	if m.engine != "" && !given("engine") {
		f.engine = string(m.engine)
	}
	return nil
}

// listWaits reports which of the modes work as events. off-cpu and lock always work, at least by looks.
func listWaits(s *session.Session, pid int) []listedEvent {
	byLooks := ""
	if err := offcpu.Try(pid); err != nil {
		byLooks = "by looks, 20 times a second: the kernel does not report context switches (" +
			output.Printable(exit.Host().Explain(pid, err).Why) + ")"
	}
	ttsp := listedEvent{Name: "ttsp", Help: "who keeps safepoints waiting, and for how long",
		Unit: profile.WallTime, Every: 1, Available: true}
	if err := s.WatchSafepoints(); err != nil {
		ttsp.Available, ttsp.Why = false, output.Printable(err.Error())
	}
	return []listedEvent{
		{Name: "off-cpu", Help: "waits of all threads, by context switches", Unit: profile.WallTime, Every: 1,
			Available: true, Note: byLooks},
		{Name: "lock", Help: "waits for monitors and java.util.concurrent locks", Unit: profile.WallTime, Every: 1,
			Available: true, Note: byLooks},
		ttsp,
	}
}
