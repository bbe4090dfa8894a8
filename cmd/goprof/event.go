//go:build linux

package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/format"
	"goprof/profile"
	"goprof/sampler/guard"
	"goprof/sampler/session"
)

// eventFlags say of what samples are taken, if not of CPU time.
type eventFlags struct {
	event  string
	every  string
	alloc  string
	kernel bool
	amount uint64 // of every
}

const eventHelp = `With --event samples are taken of something other than CPU time: alloc, exceptions, class-load,
thread-start, malloc, page-faults ... ("goprof events PID" lists them, and says which can be had), or any
function of a native library (--event libc:write, --event "libjvm:ObjectMonitor::enter"), or a tracepoint. Nobody is
stopped: the kernel takes the samples, at a breakpoint in the process's own copy of a page, which goes when goprof ends.
It needs root (CAP_SYS_ADMIN). Counts are exact, and --every thins out what comes too often: --alloc 512k is a
sample for each 512 KB that are allocated.`

func (f *eventFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.event, "event", "",
		"`what` samples are taken of, in place of CPU time: alloc, exceptions, libc:write ...")
	fs.StringVar(&f.every, "every", "",
		"with --event: the mean `amount` between two samples: 10, or of bytes 64k, 1m (the event's own)")
	fs.StringVar(&f.alloc, "alloc", "", "the same as --event alloc --every `BYTES`: 512k")
	fs.BoolVar(&f.kernel, "kernel", false,
		"with --event: the kernel's functions above the program's stack")
}

// check holds the flags against others.
func (f *eventFlags) check(cmd *cobra.Command, o *recordFlags) error {
	if f.alloc != "" {
		if f.event != "" && f.event != "alloc" || f.every != "" {
			return usageError(cmd, "--alloc BYTES is --event alloc --every BYTES: give one")
		}
		f.event, f.every = "alloc", f.alloc
	}
	if f.event == "" {
		switch {
		case f.every != "":
			return usageError(cmd, "--every is for --event; of CPU time it is --rate or --interval")
		case f.kernel:
			return usageError(cmd, "--kernel is for --event: samples of CPU time show the program's own stack only")
		}
		return nil
	}
	if f.every != "" {
		n, err := parseAmount(f.every)
		if err != nil {
			return usageError(cmd, "--every: "+err.Error())
		}
		f.amount = n
	}
	given := cmd.Flags().Changed
	switch {
	case given("mode"):
		return usageError(cmd, "--event and --mode both say when a sample is taken: give one")
	case given("rate"), given("interval"):
		return usageError(cmd,
			"--rate and --interval are for CPU time and --mode; of events --every says how many become samples")
	case given("engine") && o.engine == string(session.PtraceEngine):
		return usageError(cmd, "--event needs the kernel's perf_event: leave out --engine ptrace")
	case o.maxOverhead > 0:
		return usageError(cmd, "--max-overhead is for --engine ptrace; of events --every says how many become samples")
	case given("weight"):
		return usageError(cmd, "--weight is for CPU time and --mode; an event has its own")
	case !sums[o.as]:
		return usageError(cmd, fmt.Sprintf("--event is for collapsed, html, svg and json, not for %s", o.as))
	}
	return nil
}

// sums are the formats that are sums of samples.
var sums = map[format.Format]bool{format.Collapsed: true, format.HTML: true, format.SVG: true, format.JSON: true}

// units of amounts.
var units = []struct {
	suffix string
	shift  uint
}{{"k", 10}, {"m", 20}, {"g", 30}}

// maxAmount is the largest interval that the program at a probe can reckon with.
const maxAmount = 1 << 31

// parseAmount reads a number with k, m or g behind it: multiples of 1024.
func parseAmount(text string) (uint64, error) {
	digits, shift := strings.ToLower(text), uint(0)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(digits, u.suffix); ok {
			digits, shift = rest, u.shift
			break
		}
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || n == 0 || n > maxAmount>>shift {
		return 0, fmt.Errorf("%q is no amount between 1 and 2g", text)
	}
	return n << shift, nil
}

// rights are what the recording keeps of goprof's. The kernel's own counters need no more than CPU time does.
func (f *eventFlags) rights() guard.Keep {
	probes := f.event != "" && session.MayNeedProbes(f.event)
	switch {
	case probes && f.kernel:
		return guard.ToProbeKernel
	case probes:
		return guard.ToProbe
	case f.kernel:
		return guard.ToRecordKernel
	}
	return guard.ToRecord
}

// findEvent finds the event in one JVM.
func (r *recorder) findEvent() error {
	f := &r.flags.eventFlags
	if f.event == "" {
		return nil
	}
	plan, err := r.session.FindEvent(f.event, f.amount)
	if err != nil {
		return eventFailed(r.pid, err)
	}
	r.event = plan
	return nil
}

// eventFailed says why an event cannot be had.
func eventFailed(pid int, err error) error {
	var e *session.EventError
	if !errors.As(err, &e) {
		return attachError(pid, err)
	}
	return &exit.Error{Code: exit.NoEvent, What: "cannot take samples of " + output.CleanName(e.Name),
		Why: output.Printable(e.Why), Remedy: e.Remedy, Err: err}
}

// eventWeight is what samples of the event are counted in.
func (r *recorder) eventWeight() profile.Weight {
	if r.event == nil {
		return r.flags.weighed
	}
	return r.event.Unit
}
