//go:build linux

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/process"
	"goprof/profile"
	"goprof/profile/naming"
	"goprof/sampler/guard"
	"goprof/sampler/session"
)

const dumpHelp = `dump looks once at every thread of a JVM and shows its whole stack: interpreted, compiled
and inlined Java, stubs, and native frames. Each thread is stopped by itself, for some ten
microseconds, so two threads are not seen at the same instant.

It needs no help from the JVM, so it works where jstack hangs: on a JVM that is deadlocked,
stopped (and stays so), or in a safepoint that never ends.

A thread stops when it next has a CPU. Where more threads want one than there are, that takes its
time: a dump waits (--wait-stop). Threads that have not stopped by then have no stack; how many
those are is said, and the exit code is 10.

Where a thread runs a virtual thread, that one's frames come first, then those of the carrier.
--virtual also shows the virtual threads that no carrier runs (parked, blocked, waiting). Nothing is
stopped for those: their frames are read from the heap, each at a moment of its own, and one
that runs meanwhile may be missing, or is said not to be readable. Those that the JVM does
not keep (-Djdk.trackAllThreads=false) cannot be found.`

const dumpExample = `  goprof dump 1234                            or --pid 1234
  goprof dump petclinic                       the JVM with that in its main class or jar
  goprof dump --pid 1234 --json > threads.json
  goprof dump --pid 1234 --virtual            parked virtual threads, too
  goprof dump --pid 1234 --nonblocking        stop no thread: running ones have no stack then`

func newDump() *cobra.Command {
	var pid, inner int
	var asJSON bool
	var opt session.DumpOptions
	var names dumpNames
	var wait durationFlag
	cmd := &cobra.Command{
		Use:     "dump {PID | NAME | --ns-pid PID [NAME]}",
		Short:   "Show what every thread of a JVM does at this moment",
		Long:    dumpHelp,
		Example: dumpExample,
		Args:    atMostOne,

		ValidArgsFunction: completeNames,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			guard.Enter(guard.ToDump)
			given := cmd.Flags().Changed("pid")
			switch {
			case opt.Depth < 1 || opt.Depth > maxDepth:
				return usageError(cmd, fmt.Sprintf("--depth is between 1 and %d", maxDepth))
			case len(args) > 0 && given:
				return usageError(cmd, "--pid and NAME exclude each other")
			case len(args) > 0 && args[0] == "":
				return usageError(cmd, "an empty name fits every JVM: which one?")
			case given && inner != 0:
				return usageError(cmd, "--pid and --ns-pid exclude each other")
			case cmd.Flags().Changed("ns-pid"):
				if err := checkInner(cmd, inner); err != nil {
					return err
				}
				if pid, err = inside(inner, strings.Join(args, ""), "dump"); err != nil {
					return err
				}
			case len(args) > 0:
				if pid, err = named(args[0], "dump"); err != nil {
					return err
				}
			case given && pid <= 0:
				return usageError(cmd, fmt.Sprintf("%d is no process id", pid))
			case !given:
				return usageError(cmd, "which JVM? --pid is missing, or a part of its name")
			}
			opt.Wait = wait.Duration
			return dump(cmd, pid, asJSON, opt, names)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.IntVarP(&pid, "pid", "p", 0, "`PID` of the JVM")
	addInner(cmd, &inner)
	fs.BoolVar(&asJSON, "json", false, "write JSON")
	fs.BoolVar(&opt.NonBlocking, "nonblocking", false, "never stop a thread")
	fs.Var(&wait, "wait-stop", "`time` to wait for threads that have no CPU to stop on, while none of them stops (10s)")
	fs.BoolVar(&names.virtual, "virtual", false, "also show virtual threads that no carrier runs")
	fs.IntVar(&opt.Depth, "depth", 2048, "`frames` that a stack may have")
	fs.BoolVar(&names.hideInternal, "hide-internal", false, hideInternalUsage)
	fs.BoolVar(&names.raw, "raw-names", false, rawNamesUsage)
	cmd.RegisterFlagCompletionFunc("pid", completePIDs)
	return cmd
}

// dumpNames say what is shown, and how frames are.
type dumpNames struct{ raw, hideInternal, virtual bool }

func (n dumpNames) fold(threads []profile.ThreadDump) {
	if n.hideInternal {
		var folder naming.Folder
		for i := range threads {
			folder.Stack(&threads[i].Stack)
		}
	}
}

func dump(cmd *cobra.Command, pid int, asJSON bool, opt session.DumpOptions, names dumpNames) error {
	defer session.StopAfterSuspend()()
	s, err := session.Attach(pid)
	if err != nil {
		return attachError(pid, err)
	}
	defer s.Close()
	if err := host().Traced(pid); err != nil && !opt.NonBlocking {
		return attachError(pid, err)
	}
	doubts{}.warn(cmd.ErrOrStderr(), s.Doubts())
	if names.raw {
		s.RawNames()
	}
	if names.virtual && !s.HasVirtual() {
		return attachError(pid, session.ErrNoVirtual)
	}
	threads, err := s.Dump(opt)
	var incomplete error // the others' stacks are there, and are shown
	if errors.Is(err, process.ErrSilent) && len(threads) > 0 {
		incomplete = err
	} else if err != nil {
		return attachError(pid, err)
	}
	var census *profile.VirtualCensus
	if names.virtual && incomplete == nil {
		var unmounted []profile.ThreadDump
		var found profile.VirtualCensus
		unmounted, found, incomplete = s.DumpVirtual(opt)
		threads, census = append(threads, unmounted...), &found
		tellCensus(cmd.ErrOrStderr(), census)
	}
	names.fold(threads)
	tellNotes(cmd.ErrOrStderr(), host().Notes(s))
	out, err := output.Reserve(output.Stdout)
	if err != nil {
		return outputFailed(err)
	}
	_, err = out.Write(func(w io.Writer) error {
		if asJSON {
			return output.DumpVirtualJSON(w, threads, census)
		}
		return output.DumpText(w, threads)
	})
	if err != nil {
		return outputFailed(err)
	}
	if incomplete != nil {
		return attachError(pid, incomplete)
	}
	return notStopped(pid, threads, cmp.Or(opt.Wait, session.DumpWait))
}

// notStopped is the error of a dump that lacks stacks.
func notStopped(pid int, threads []profile.ThreadDump, wait time.Duration) error {
	n := session.NotStopped(threads)
	if n == 0 {
		return nil
	}
	return &exit.Error{Code: exit.Incomplete,
		What:   fmt.Sprintf("%d of %d threads of process %d have no stack", n, len(threads), pid),
		Why:    fmt.Sprintf("they did not stop in %v: the machine is overloaded, or the kernel holds them up", wait),
		Remedy: fmt.Sprintf("goprof dump --pid %d --wait-stop %v", pid, 6*wait)}
}

// tellCensus says how many virtual threads are shown, and why others are not.
func tellCensus(to io.Writer, c *profile.VirtualCensus) {
	fmt.Fprintf(to, "goprof: %d virtual threads, %d of them shown that no carrier ran\n", c.Seen, c.Shown)
	for _, why := range slices.Sorted(maps.Keys(c.Unread)) {
		fmt.Fprintf(to, "goprof: %d could not be read, or not whole: %s\n", c.Unread[why], output.Printable(why))
	}
	if c.Untracked {
		fmt.Fprintln(to, "goprof: the JVM keeps only those that an executor has started (jdk.trackAllThreads=false)")
	}
}
