//go:build linux

package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output/outfile"
	"goprof/process"
	"goprof/profile"
	"goprof/sampler/guard"
	"goprof/session"
)

const dumpHelp = `dump looks once at every thread of a JVM and shows its whole stack: interpreted, compiled
and inlined Java, stubs, and native frames. Each thread is stopped by itself, for some ten
microseconds, so two threads are not seen at the same instant.

It needs no help from the JVM, so it works where jstack hangs: on a JVM that is deadlocked,
stopped (and stays so), or in a safepoint that never ends.

The application's threads come first: main, then the others in the order of their birth, so that a
pool stands together and two dumps can be compared line by line. Then come the threads of the JDK
and of the JVM. The frames by which the JVM starts a thread (__clone3 ... call_stub) are left out;
--native shows them. JSON has all frames (--native=false leaves them out there, too).

--group shows threads that stand at the same place in the same state once, with their count.
--pools shows pools of threads in place of the threads: how many are busy and what with, and how many
tasks wait, where the JVM's objects tell (executors of the JDK, Tomcat and Netty, connections of
HikariCP). A number that could not be read is not shown.
-n 3 --every 5s takes several dumps. At the end it says which threads did not move, and how much CPU
time each used in between. Ctrl-C ends that with the dumps that there are.
--format jstack prints what fastThread, jstall, TDA, IntelliJ and the like read: Java frames alone.

A thread stops when it next has a CPU. Where more threads want one than there are, that takes its
time: a dump waits (--wait-stop). Threads that have not stopped by then have no stack. goprof says
how many these are, and the exit code is 10.

If a thread runs a virtual thread, the virtual thread's frames come first, then those of the carrier.
--virtual also shows the virtual threads that no carrier runs (parked, blocked, waiting); without it
only those that are in a deadlock are shown. Nothing is stopped for them: their frames are read from
the heap, one after the other. A virtual thread that runs meanwhile may be missing, or has an error in
place of a stack. Those that the JVM does not keep (-Djdk.trackAllThreads=false) cannot be found.

--core FILE reads a core file instead: the same threads, stacks and locks as they were when the JVM
died, and which signal ended it, where, and at which address. The thread that died comes first.
What the core does not hold (code, the class archive) comes from the files that were mapped: from
where they were, or below --root, or from --debug-dir, if their build id proves that they are the
same. See docs/cores.md.`

const dumpExample = `  goprof dump 1234                            or --pid 1234
  goprof dump petclinic                       the JVM with that in its main class or jar
  goprof dump 1234 --group                    threads at the same place once
  goprof dump 1234 --pools                    pools: how many are busy, what waits in their queues
  goprof dump 1234 -n 3 --every 5s            three dumps: what moved, and what did not
  goprof dump 1234 --json --redact default    pseudonyms in place of names
  goprof dump 1234 --format jstack > t.txt    for tools that read jstack's dumps
  goprof dump 1234 -o threads.json            the ending chooses JSON or text
  goprof dump 1234 --virtual                  parked virtual threads, too
  goprof dump 1234 --nonblocking              stop no thread: running ones have no stack then
  goprof dump --core core.1234                what it did when it died
  goprof dump --core core.zst --root ./image  its files are in an unpacked container image`

func newDump() *cobra.Command {
	d := &dumper{}
	cmd := &cobra.Command{
		Use:     "dump {PID | NAME | --ns-pid PID [NAME] | --core FILE}",
		Short:   "Show what every thread of a JVM does at this moment",
		Long:    dumpHelp,
		Example: dumpExample,
		Args:    atMostOne,
	}
	cmd.RunE = d.runs(d.lookAt, &d.output)
	fs := cmd.Flags()
	fs.SortFlags = false
	d.jvm.addFlags(cmd)
	d.add(cmd)
	fs.BoolVar(&d.shape.Pools, "pools", false, "show pools of threads and their queues (in text, in place of the threads)")
	fs.IntVarP(&d.count, "count", "n", 1, "`number` of dumps")
	fs.Var(asTime(&d.every), "every", "`time` from one dump to the next, with -n (5s)")
	fs.BoolVar(&d.live.NonBlocking, "nonblocking", false, "never stop a thread")
	fs.Var(asTime(&d.live.Wait), "wait-stop", waitStopUsage)
	return cmd
}

// lookAt dumps what the command line names: a snap, a core file, or a live JVM.
func (d *dumper) lookAt(cmd *cobra.Command, args []string) (err error) {
	kept := isSnap(args)
	switch {
	case d.core.file != "":
		readFilesOnly(cmd, args)
	case !kept:
		guard.Enter(d.toDump(d.output))
	}
	if err := d.check(cmd); err != nil {
		return err
	}
	if kept {
		return showKept(cmd, args[0], "dump", d.format, d.output, d.by)
	}
	if err := d.core.check(cmd, args, liveDumpFlags...); err != nil {
		return err
	}
	if d.core.file != "" {
		return d.dead(cmd)
	}
	if d.pid, err = d.jvm.find(cmd, args); err != nil {
		return err
	}
	return d.run(cmd)
}

const waitStopUsage = "`time` to wait for threads that have no CPU to stop on, while none of them stops (10s)"

// maxDumps limits -n, because all dumps are kept until the end.
const maxDumps = 1000

// dumpEvery is the default time between dumps.
const dumpEvery = 5 * time.Second

// dumper holds the command line's options.
type dumper struct {
	dumpFlags
	jvm   oneJVM
	pid   int
	count int
	every time.Duration
	live  session.DumpOptions
}

// liveDumpFlags are for live JVMs only.
var liveDumpFlags = []string{"pid", "ns-pid", "count", "every", "nonblocking", "wait-stop", "pools"}

// toDump returns the rights that dump and locks keep. They include writing only if -o or --redact-map names a file.
func (f *redactFlags) toDump(name string) guard.Keep {
	if f.names != "" || name != outfile.Stdout {
		return guard.ToDumpAndWrite
	}
	return guard.ToDump
}

func (d *dumper) check(cmd *cobra.Command) error {
	if err := d.dumpFlags.check(cmd); err != nil {
		return err
	}
	switch {
	case d.count < 1 || d.count > maxDumps:
		return usageError(cmd, fmt.Sprintf("-n is between 1 and %d", maxDumps), with("count", "3"))
	case cmd.Flags().Changed("every") && d.count == 1:
		return usageError(cmd, "--every says when the next dump comes: -n N is missing", with("count", "3"))
	case d.format == dumpAsJstack && d.shape.Pools:
		return usageError(cmd, "--format jstack has no place for pools: text and json show them", without("pools"))
	}
	d.live.Depth, d.live.Locks = d.opt.Depth, d.opt.Locks
	d.every = cmp.Or(d.every, dumpEvery)
	return nil
}

// notStopped returns the error of a dump that lacks stacks.
func notStopped(command string, pid int, threads []profile.ThreadDump, wait time.Duration) error {
	late, leftOut, refused := session.NotStopped(threads)
	what := func(n int) string {
		return fmt.Sprintf("%d of %d threads of process %d have no stack", n, len(threads), pid)
	}
	switch {
	case refused > 0:
		return exit.CannotLook(pid, process.ErrNotPermitted)
	case leftOut > 0:
		why, cure := session.StopsUnbounded()
		if why == "" { // the cause has gone
			why = "goprof had no CPU in time"
			if _, cure = session.NoPriority(); cure == "" {
				cure = fmt.Sprintf("goprof %s --pid %d", command, pid)
			}
		}
		return &exit.Error{Code: exit.Incomplete, What: what(late + leftOut),
			Why: "they run, and were not stopped, as they might have been held for too long: " + why, Remedy: cure}
	case late > 0:
		return &exit.Error{Code: exit.Incomplete, What: what(late),
			Why: fmt.Sprintf("they did not stop: they had no CPU for %v, as the machine is overloaded, or the kernel holds "+
				"them up", wait),
			Remedy: fmt.Sprintf("goprof %s --pid %d --wait-stop %v", command, pid, 6*wait)}
	}
	return nil
}
