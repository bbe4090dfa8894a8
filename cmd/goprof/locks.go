//go:build linux

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output/dumps"
	"goprof/output/outfile"
	"goprof/process"
	"goprof/profile"
	"goprof/profile/contention"
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
	opt := session.DumpOptions{Locks: true, Gentle: true}
	cmd := &cobra.Command{
		Use:     "locks {PID | NAME | --ns-pid PID [NAME] | --core FILE}",
		Short:   "Show deadlocks of a JVM, and which threads wait for whose locks",
		Long:    locksHelp,
		Example: locksExample,
		Args:    atMostOne,
	}
	cmd.RunE = to.runs(func(cmd *cobra.Command, args []string) error {
		if isSnap(args) {
			return showKept(cmd, args[0], "locks", keptFormat(to.json), outfile.Stdout, to.by)
		}
		if core.file != "" {
			readFilesOnly(cmd, args)
		} else {
			guard.Enter(to.toDump(outfile.Stdout))
		}
		if err := core.check(cmd, args, "pid", "ns-pid", "nonblocking", "wait-stop"); err != nil {
			return err
		}
		if err := checkDepth(cmd, opt.Depth); err != nil {
			return err
		}
		if core.file != "" {
			return locksOfCore(cmd, &core, &to, raw, opt.Depth)
		}
		pid, err := jvm.find(cmd, args)
		if err != nil {
			return err
		}
		return locks(cmd, pid, &to, raw, opt)
	}, &stdout)
	fs := cmd.Flags()
	fs.SortFlags = false
	jvm.addFlags(cmd)
	core.addFlags(cmd)
	fs.BoolVar(&to.json, "json", false, "write JSON")
	fs.BoolVar(&opt.NonBlocking, "nonblocking", false, "never stop a thread")
	fs.Var(asTime(&opt.Wait), "wait-stop", waitStopUsage)
	fs.IntVar(&opt.Depth, "depth", 2048, "`frames` that a stack may have")
	fs.BoolVar(&raw, "raw-names", false, rawNamesUsage)
	to.redactFlags.add(cmd)
	return cmd
}

func locks(cmd *cobra.Command, pid int, to *locksWriter, raw bool, opt session.DumpOptions) error {
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
	graph, err := to.write(cmd, seen.threads)
	if err != nil {
		return err
	}
	if err := seen.verdict(fmt.Sprintf("process %d", pid), fmt.Sprintf("goprof locks --pid %d", pid), graph); err != nil {
		return err
	}
	return notStopped("locks", pid, seen.threads, cmp.Or(opt.Wait, session.DumpWait))
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

// verdict returns the command's error: nil if there is no deadlock and none can be missing. of names the JVM or file.
// again is the command that looks once more; it is empty for a core file, which would show the same.
func (seen *seenLocks) verdict(of, again string, graph *contention.Graph) error {
	n, all := profile.Unconfirmed(seen.threads), len(seen.threads)
	e := &exit.Error{Code: exit.Incomplete, Why: unconfirmedWhy, Remedy: again,
		What: fmt.Sprintf("what %d of %d threads of %s wait for could not be confirmed", n, all, of)}
	switch {
	case len(graph.Deadlocks) > 0:
		return deadlocked(of, graph)
	case seen.incomplete != nil:
		return seen.incomplete
	case n > 0 && again == "":
		e.Why = "a collector was at work when the process ended"
	case n > 0:
	case seen.waits.Unread() != "":
		e.What, e.Why, e.Remedy = "not all virtual threads of "+of+" are known", seen.waits.Unread(), ""
	default:
		return nil
	}
	e.Why += "; so a deadlock of theirs is not ruled out"
	return e
}

// locksOfCore runs the command on a core file.
func locksOfCore(cmd *cobra.Command, core *coreFile, to *locksWriter, raw bool, depth int) error {
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
	graph, err := to.write(cmd, dump.Threads)
	if err != nil {
		return err
	}
	if len(graph.Deadlocks) > 0 {
		return deadlocked(fmt.Sprintf("process %d", dump.PID), graph)
	}
	return (&seenLocks{threads: dump.Threads, waits: dump.Waits}).verdict(core.file, "", graph)
}

type locksWriter struct {
	json bool
	redactFlags
}

func (o *locksWriter) write(cmd *cobra.Command, threads []profile.ThreadDump) (*contention.Graph, error) {
	if o.by != nil {
		o.by.Dump(&profile.Dump{Threads: threads})
	}
	graph := contention.New(threads)
	return graph, writeResult(cmd, outfile.Stdout, func(w io.Writer) error {
		if o.json {
			return dumps.LocksJSON(w, threads, graph)
		}
		return dumps.LocksText(w, threads, graph)
	})
}

// unconfirmedWhy is why a wait could not be confirmed.
const unconfirmedWhy = "they had a CPU while it was read, or a collector was at work"

// tellUnconfirmed reports how many threads are left out because their locks could not be confirmed.
func tellUnconfirmed(to io.Writer, threads []profile.ThreadDump) {
	if n := profile.Unconfirmed(threads); n > 0 {
		fmt.Fprintf(to, "goprof: what %d of %d threads wait for could not be confirmed, and is left out: %s\n",
			n, len(threads), unconfirmedWhy)
	}
}

// deadlocked returns the error of a command that has found deadlocks.
func deadlocked(of string, g *contention.Graph) error {
	n, what := 0, "a deadlock"
	for _, cycle := range g.Deadlocks {
		n += len(cycle)
	}
	if len(g.Deadlocks) > 1 {
		what = fmt.Sprintf("%d deadlocks", len(g.Deadlocks))
	}
	threads := "1 thread"
	if n != 1 {
		threads = fmt.Sprintf("%d threads", n)
	}
	return &exit.Error{Code: exit.Deadlocked, What: fmt.Sprintf("%s has %s of %s", of, what, threads)}
}
