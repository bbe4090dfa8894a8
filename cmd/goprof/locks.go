//go:build linux

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output/dumps"
	"goprof/output/outfile"
	"goprof/process"
	"goprof/profile"
	"goprof/profile/contention"
	"goprof/profile/redact"
	"goprof/sampler/guard"
	"goprof/session"
	"goprof/session/postmortem"
)

const locksHelp = `locks shows which threads of a JVM wait for which lock, which thread has that lock, and what each
thread holds. Locks are monitors (synchronized, Object.wait), the locks of java.util.concurrent
(ReentrantLock, ReentrantReadWriteLock), and classes whose static initialiser runs.

Deadlocks come first, each with the stacks of its threads. Then come the threads that others wait
for, each with its stack and a tree of those that wait. Last comes what threads hold.

locks needs no help from the JVM. So it works on a JVM that is deadlocked, in a safepoint that never
ends, or stopped. A stopped JVM stays stopped.

All threads run on while the locks are read. A thread that runs is stopped alone, for its stack; a
thread that waits is not stopped. What locks shows was the same in two readings, and the threads of
a deadlock did not run in between. Threads of which this could not be confirmed are listed as such.
On a busy machine, run locks again.

A lock of java.util.concurrent is seen only if a thread waits for it: a held lock without a waiter
is an object like any other. docs/locks.md lists what else cannot be seen.

--core FILE reads a core file instead. No thread runs there, so one reading is enough (docs/cores.md).

The exit code is 12 if there is a deadlock, and 0 if there is none. It is 10 if no deadlock was
found and goprof does not know what some threads wait for.`

const locksExample = `  goprof locks 1234                           or --pid 1234
  goprof locks petclinic                      the JVM with that in its main class or jar
  goprof locks 1234 --json | jq .deadlocks
  goprof locks 1234 --json --redact default   pseudonyms in place of names
  goprof locks --core core.1234               of a JVM that is dead
  goprof locks 1234 >locks.txt; [ $? = 12 ] && mail -s deadlock ops <locks.txt`

func newLocks() *cobra.Command {
	var jvm oneJVM
	var core coreFile
	var raw bool
	var to locksWriter
	var hide redactFlags
	opt := session.DumpOptions{Locks: true, Gentle: true}
	var wait time.Duration
	cmd := &cobra.Command{
		Use:     "locks {PID | NAME | --ns-pid PID [NAME] | --core FILE}",
		Short:   "Show deadlocks of a JVM, and which threads wait for whose locks",
		Long:    locksHelp,
		Example: locksExample,
		Args:    atMostOne,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if to.by, err = hide.redactor(cmd, outfile.Stdout); err != nil {
				return err
			}
			if isSnap(args) {
				return hide.thenMap(showKept(cmd, args[0], "locks", keptFormat(to.json), outfile.Stdout, to.by))
			}
			if core.file != "" {
				readFilesOnly(cmd, args)
			} else {
				guard.Enter(hide.toDump(outfile.Stdout))
			}
			if err := core.check(cmd, args, "pid", "ns-pid", "nonblocking", "wait-stop"); err != nil {
				return err
			}
			if opt.Depth < 1 || opt.Depth > maxDepth {
				return usageError(cmd, fmt.Sprintf("--depth is between 1 and %d", maxDepth), without("depth"))
			}
			if core.file != "" {
				err = locksOfCore(cmd, &core, to, raw, opt.Depth)
			} else if pid, e := jvm.find(cmd, args); e != nil {
				return e
			} else {
				opt.Wait = wait
				err = locks(cmd, pid, to, raw, opt)
			}
			return hide.thenMap(err)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	jvm.addFlags(cmd)
	core.addFlags(cmd)
	fs.BoolVar(&to.json, "json", false, "write JSON")
	fs.BoolVar(&opt.NonBlocking, "nonblocking", false, "never stop a thread")
	fs.Var(asTime(&wait), "wait-stop", "`time` to wait for threads that have no CPU to stop on, while none of them stops (10s)")
	fs.IntVar(&opt.Depth, "depth", 2048, "`frames` that a stack may have")
	fs.BoolVar(&raw, "raw-names", false, rawNamesUsage)
	hide.add(cmd)
	return cmd
}

func locks(cmd *cobra.Command, pid int, to locksWriter, raw bool, opt session.DumpOptions) error {
	defer session.StopAfterSuspend()()
	s, err := attach(cmd, pid, !opt.NonBlocking)
	if err != nil {
		return err
	}
	defer s.Close()
	if raw {
		s.RawNames()
	}
	seen, err := seeLocks(s, opt)
	if err != nil {
		return err
	}
	tellVirtualWaits(cmd.ErrOrStderr(), &seen.waits)
	exit.TellNotes(cmd.ErrOrStderr(), notesOf(s, to.by))
	graph, err := to.write(seen.threads)
	if err != nil {
		return err
	}
	return seen.verdict(pid, graph, opt.Wait)
}

// seenLocks is what was seen of the locks of a live JVM.
type seenLocks struct {
	threads    []profile.ThreadDump
	waits      profile.VirtualWaits
	incomplete error // why stacks are missing
}

func seeLocks(s *session.Session, opt session.DumpOptions) (seen seenLocks, err error) {
	pid := s.Process.PID()
	opt.Virtual = &seen.waits
	seen.threads, err = s.Dump(opt)
	switch {
	case errors.Is(err, process.ErrSilent) && len(seen.threads) > 0:
		seen.incomplete = exit.CannotLook(pid, err)
	case errors.Is(err, session.ErrNoLocks):
		return seen, &exit.Error{Code: exit.Incomplete, What: fmt.Sprintf("the locks of process %d are not known", pid),
			Why: err.Error(), Remedy: fmt.Sprintf("goprof locks --pid %d", pid)}
	case err != nil:
		return seen, exit.CannotLook(pid, err)
	}
	return seen, nil
}

// verdict returns how the command ends: nil if there is no deadlock, and none can have been missed.
func (seen *seenLocks) verdict(pid int, graph *contention.Graph, wait time.Duration) error {
	switch {
	case len(graph.Deadlocks) > 0:
		return deadlocked(pid, graph)
	case seen.incomplete != nil:
		return seen.incomplete
	case profile.Unconfirmed(seen.threads) > 0:
		return unconfirmed(pid, seen.threads)
	case seen.waits.Unread() != "":
		return unread(fmt.Sprintf("process %d", pid), &seen.waits)
	}
	return notStopped("locks", pid, seen.threads, cmp.Or(wait, session.DumpWait))
}

// locksOfCore runs the command on the core file of a dead JVM.
func locksOfCore(cmd *cobra.Command, core *coreFile, to locksWriter, raw bool, depth int) error {
	core.by = to.by
	o, err := core.open(cmd)
	if err != nil {
		return err
	}
	defer o.Close()
	if err := o.LocksKnown(); err != nil {
		return &exit.Error{Code: exit.BadCore, What: "cannot read locks out of " + core.file, Why: err.Error(), Err: err}
	}
	o.Walker.RawNames = raw
	dump, err := o.dump(cmd, postmortem.Options{Depth: depth, Locks: true}, false)
	if err != nil {
		return err
	}
	tellVirtualWaits(cmd.ErrOrStderr(), &dump.Waits)
	graph, err := to.write(dump.Threads)
	if err == nil && len(graph.Deadlocks) > 0 {
		return deadlocked(dump.PID, graph)
	}
	if err == nil && profile.Unconfirmed(dump.Threads) > 0 {
		return unconfirmedOfCore(core.file, dump.Threads)
	}
	if err == nil && dump.Waits.Unread() != "" {
		return unread(core.file, &dump.Waits)
	}
	return err
}

type locksWriter struct {
	json bool
	by   *redact.Redactor // nil: all names may be shown
}

func (o locksWriter) write(threads []profile.ThreadDump) (*contention.Graph, error) {
	if o.by != nil {
		o.by.Dump(&profile.Dump{Threads: threads})
	}
	graph := contention.New(threads)
	out, err := outfile.Reserve(outfile.Stdout)
	if err != nil {
		return nil, exit.CannotWrite(err)
	}
	if _, err := out.Write(func(w io.Writer) error {
		if o.json {
			return dumps.LocksJSON(w, threads, graph)
		}
		return dumps.LocksText(w, threads, graph)
	}); err != nil {
		return nil, exit.CannotWrite(err)
	}
	return graph, nil
}

// unconfirmedWhy is why a wait could not be confirmed.
const unconfirmedWhy = "they had a CPU while it was read, or a collector was at work"

// tellUnconfirmed says how many threads are left out, because what they wait for could not be confirmed.
func tellUnconfirmed(to io.Writer, threads []profile.ThreadDump) {
	if n := profile.Unconfirmed(threads); n > 0 {
		fmt.Fprintf(to, "goprof: what %d of %d threads wait for could not be confirmed, and is left out: %s\n",
			n, len(threads), unconfirmedWhy)
	}
}

// unconfirmed is how a command ends that has found no deadlock among what could be confirmed.
func unconfirmed(pid int, threads []profile.ThreadDump) error {
	n := profile.Unconfirmed(threads)
	return &exit.Error{Code: exit.Incomplete,
		What:   fmt.Sprintf("what %d of %d threads of process %d wait for could not be confirmed", n, len(threads), pid),
		Why:    unconfirmedWhy + "; so a deadlock of theirs is not ruled out",
		Remedy: fmt.Sprintf("goprof locks --pid %d", pid)}
}

// unconfirmedOfCore is unconfirmed for a core file. It proposes no second try: the core would say the same.
func unconfirmedOfCore(name string, threads []profile.ThreadDump) error {
	n := profile.Unconfirmed(threads)
	return &exit.Error{Code: exit.Incomplete,
		What: fmt.Sprintf("what %d of %d threads of %s wait for could not be confirmed", n, len(threads), name),
		Why:  "a collector was at work when the process ended; so a deadlock of theirs is not ruled out"}
}

// unread is how a command ends that has found no deadlock among the virtual threads that could be read.
func unread(of string, v *profile.VirtualWaits) error {
	return &exit.Error{Code: exit.Incomplete, What: "not all virtual threads of " + of + " are known",
		Why: v.Unread() + "; so a deadlock of theirs is not ruled out"}
}

func threadCount(n int) string {
	if n == 1 {
		return "1 thread"
	}
	return fmt.Sprintf("%d threads", n)
}

// deadlocked returns how a command ends that has found deadlocks.
func deadlocked(pid int, g *contention.Graph) error {
	n, what := 0, "a deadlock"
	for _, cycle := range g.Deadlocks {
		n += len(cycle)
	}
	if len(g.Deadlocks) > 1 {
		what = fmt.Sprintf("%d deadlocks", len(g.Deadlocks))
	}
	return &exit.Error{Code: exit.Deadlocked, What: fmt.Sprintf("process %d has %s of %s", pid, what, threadCount(n))}
}
