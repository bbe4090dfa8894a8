//go:build linux

package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goprof/output/format"
	"goprof/profile"
	"goprof/sampler/events"
	"goprof/sampler/guard"
	"goprof/session"
)

// eventFlags say which events are sampled instead of CPU time.
type eventFlags struct {
	event  string
	every  string
	alloc  string
	leak   bool
	asked  []session.AskedEvent // the events, with every and alloc
	others []string             // the other parts that --event names
	lead   string               // the part that --event names first; empty if it names an event first
}

const eventHelp = `--event takes samples of something other than CPU time: alloc, exceptions, class-load, thread-start,
malloc, page-faults ... ("goprof events PID" lists them, and says which are available), any function
of a native library (--event libc:write, --event "libjvm:ObjectMonitor::enter"), or a tracepoint. No
thread is stopped: the kernel takes the samples at a breakpoint in the process's own copy of a page,
and removes it when goprof ends. It needs root (CAP_SYS_ADMIN). Counts are exact. --every thins out
what comes too often: --alloc 512k is a sample for each 512 KB that are allocated. Several events go
into one JFR file: --event alloc=512k,exceptions. --event io samples reads and writes, by file and
peer: "goprof report FILE --by peer" has the sums. CPU time and waits may be in the list (cpu, wall,
off-cpu, lock, ttsp): each is a part with its own account.`

func (f *recordFlags) addEvent(fs *pflag.FlagSet) {
	fs.StringVar(&f.event, "event", "",
		"`what` samples are taken of, in place of CPU time: alloc, exceptions, libc:write ...; several with commas, "+
			"cpu, off-cpu, lock and ttsp among them")
	fs.StringVar(&f.every, "every", "",
		"with --event: the mean `amount` between two samples: 10, or of bytes 64k, 1m (the event's own)")
	fs.StringVar(&f.alloc, "alloc", "", "the same as --event alloc --every `BYTES`: 512k")
	fs.BoolVar(&f.leak, "leak", false,
		"with --event malloc or mmap: only what is not freed by the end, apart by whether it is from the first half of "+
			"the recording")
	fs.BoolVar(&f.all.Kernel, "kernel", false,
		"the kernel's functions above the program's stack: with --event, and of CPU time with --engine perf")
}

func (f *recordFlags) checkEvent(cmd *cobra.Command) error {
	if err := f.ask(cmd); err != nil {
		return err
	}
	if len(f.asked)+len(f.others) == 0 {
		switch {
		case f.every != "":
			return usageError(cmd, "--every is for --event; of CPU time it is --rate or --interval", without("every"))
		case f.all.Kernel && f.mode != profile.ModeCPU:
			return usageError(cmd, "--kernel is for CPU time and --event: of threads that wait, no look shows the kernel's part",
				without("kernel"))
		case f.all.Kernel && f.maxOverhead > 0:
			return usageError(cmd, "--max-overhead is for --engine ptrace: perf_event does not say what a sample costs",
				without("max-overhead"))
		case f.all.Kernel && cmd.Flags().Changed("engine") && f.engine != string(session.PerfEngine):
			return usageError(cmd, "--kernel needs --engine perf: only the kernel itself sees its part of a stack",
				with("engine", "perf"))
		case f.all.Kernel:
			f.engine = string(session.PerfEngine)
		}
		return nil
	}
	given := cmd.Flags().Changed
	switch {
	case given("mode"):
		return usageError(cmd, "--event and --mode both say when a sample is taken: give one", without("mode"))
	case len(f.others) > 0:
		return f.checkParts(cmd)
	case given("rate"), given("interval"):
		return usageError(cmd,
			"--rate and --interval are for CPU time and --mode; of events --every says how many become samples",
			without("rate", "interval"))
	case given("engine") && f.engine == string(session.PtraceEngine):
		return usageError(cmd, "--event needs the kernel's perf_event: leave out --engine ptrace", without("engine"))
	case given("weight"):
		return usageError(cmd, "--weight is for CPU time and --mode; an event has its own", without("weight"))
	case len(f.asked) > 1 && f.Files.As != format.JFR:
		return severalInto(cmd, f.Files.As)
	}
	return nil
}

func severalInto(cmd *cobra.Command, as format.Format) error {
	return usageError(cmd, fmt.Sprintf("several events go into a JFR file (-o FILE.jfr), and one into %s", as),
		with("output", "out.jfr"), without("format"))
}

const everyHelp = "--every is for one event; of several each has its own: --event alloc=512k,exceptions=10"

// notEvents are asprof's events that are other flags of record.
var notEvents = map[string]string{
	"cpu": "what record takes without --event", "itimer": "what record takes without --event: cpu beside other events",
	"ctimer": "what record takes without --event: cpu beside other events", "wall": "--mode wall here",
}

// ask finds out which events are wanted.
func (f *recordFlags) ask(cmd *cobra.Command) (err error) {
	if f.event != "" {
		if f.asked, err = session.ParseEvents(f.event); err != nil {
			return usageError(cmd, "--event: "+err.Error())
		}
	}
	if len(f.asked) > 1 || f.alloc != "" {
		if err := f.takeParts(cmd); err != nil {
			return err
		}
	}
	for _, e := range f.asked {
		if way, is := notEvents[e.Name]; is {
			return usageError(cmd, fmt.Sprintf("--event %s is %s", e.Name, way))
		}
		if _, is := eventModes[e.Name]; is {
			return noAmount(cmd, e.Name)
		}
	}
	if f.every != "" {
		if f.alloc != "" || len(f.asked)+len(f.others) > 1 {
			return usageError(cmd, everyHelp, without("every"))
		}
		if len(f.asked) == 1 {
			if f.asked[0].Every, err = session.ParseAmount(f.every); err != nil {
				return usageError(cmd, "--every: "+err.Error(), without("every"))
			}
		}
	}
	if err := f.askAlloc(cmd); err != nil {
		return err
	}
	if err := f.askLeak(cmd); err != nil {
		return err
	}
	if len(f.asked) > events.MaxEvents/2 { // some events are two functions
		return usageError(cmd, fmt.Sprintf("--event names no more than %d events", events.MaxEvents/2))
	}
	return nil
}

func (f *eventFlags) askAlloc(cmd *cobra.Command) error {
	if f.alloc == "" {
		return nil
	}
	n, err := session.ParseAmount(f.alloc)
	if err != nil {
		return usageError(cmd, "--alloc: "+err.Error(), with("alloc", "512k"))
	}
	for i := range f.asked {
		if f.asked[i].Name == profile.EventAlloc {
			f.asked[i].Every = n
			return nil
		}
	}
	f.asked = append(f.asked, session.AskedEvent{Name: profile.EventAlloc, Every: n})
	return nil
}

// leaks maps events of memory to the events of memory that is not freed.
var leaks = map[string]string{"malloc": profile.EventLeak, "mmap": profile.EventMapLeak}

// askLeak replaces the event by the event of memory that is not freed.
func (f *eventFlags) askLeak(cmd *cobra.Command) error {
	if !f.leak {
		return nil
	}
	n := 0
	for i := range f.asked {
		if name := leaks[f.asked[i].Name]; name != "" {
			f.asked[i].Name = name
			n++
		}
	}
	if n != 1 {
		return usageError(cmd, "--leak is for one of --event malloc and --event mmap", with("event", "malloc"))
	}
	return nil
}

// rights returns the rights that goprof keeps for the recording. The kernel's counters need the same rights as CPU
// time. Functions of the kernel also need their names.
func (f *recordFlags) rights() guard.Keep {
	kernel := f.all.Kernel || f.all.Wakers
	probes := slices.ContainsFunc(f.asked, func(e session.AskedEvent) bool { return session.MayNeedProbes(e.Name) })
	switch {
	case probes && kernel:
		return guard.ToProbeKernel
	case probes:
		return guard.ToProbe
	case kernel:
		return guard.ToRecordKernel
	}
	return guard.ToRecord
}
