//go:build linux

package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/terminal"
	"goprof/diagnose"
	"goprof/output/outfile"
	"goprof/sampler/guard"
	"goprof/session"
)

const snapHelp = `snap keeps in one file what can be seen of a JVM within some 15 seconds, before a restart:
its entry of goprof list, doctor, the flags of the JVM, limits and control groups, pressure, the
processes that use CPU, three dumps, locks, triage with its vitals, a recording of CPU time and of
waits, the memory and heap tables, the end of the log of garbage collection, and crash files (hs_err).

The JVM need not answer, so it may hang, be stopped or frozen. README.txt and contents.json in the zip
name every part. If a part is missing, the reason is there and in the last lines on standard error,
and the exit code is 10. Ctrl-C ends with the parts that there are.

triage, dump, locks, heap and memory show the parts of the file: goprof triage snap.zip. flame,
report, heat, diff and convert read its recording: goprof flame snap.zip --event off-cpu.

The file holds names of the program; --redact replaces them in every part. goprof puts no system
properties or environment into it. Flags, logs and crash files may hold arguments, crash files
the environment, too. docs/snap.md has the rest.`

const snapExample = `  goprof snap 1234                       into snap.zip, or snap.1.zip ...
  goprof snap petclinic -o incident.zip  the JVM with that in its main class or jar
  goprof snap 1234 -o - | ssh host 'cat > snap.zip'
  goprof snap 1234 --redact default      pseudonyms in place of names
  goprof snap --all                      all JVMs of this host: snap-1234.zip ...
  goprof triage snap.zip                 what was wrong
  goprof dump snap.zip                   what the threads did
  goprof flame snap.zip                  where CPU time went`

type snapFlags struct {
	jvm      oneJVM
	all      bool
	duration time.Duration
	output   string
	before   string // the folder of an agent's files; snapper.NoFiles; or "" if no agent takes this snap
	redactFlags
}

const (
	snapLeast = time.Second
	snapMost  = 10 * time.Minute
)

func newSnap() *cobra.Command {
	f := snapFlags{duration: 10 * time.Second}
	cmd := &cobra.Command{
		Use:     "snap {PID | NAME | --ns-pid PID [NAME] | --all}",
		Short:   "Keep in one file what can be seen of a JVM, before a restart",
		Long:    snapHelp,
		Example: snapExample,
		Args:    atMostOne,
	}
	cmd.RunE = f.runs(f.run, &f.output)
	fs := cmd.Flags()
	fs.SortFlags = false
	f.jvm.addFlags(cmd)
	fs.BoolVar(&f.all, "all", false, "all JVMs of this host, one after the other, each into a file of its own")
	fs.VarP(asTime(&f.duration), "duration", "d", "how long to record; triage takes 4s at least")
	fs.StringVarP(&f.output, "output", "o", "",
		"`file`; - is standard output, %p the pid, %t the time (snap.zip, or with --all snap-%p.zip, numbered)")
	fs.StringVar(&f.before, "before", "", "`folder` of an agent's files; the vitals before come on standard input")
	fs.MarkHidden("before")
	f.redactFlags.add(cmd)
	return cmd
}

func (f *snapFlags) check(cmd *cobra.Command, args []string) error {
	switch {
	case f.duration < snapLeast || f.duration > snapMost:
		return usageError(cmd, fmt.Sprintf("--duration is between %v and %v", snapLeast, snapMost), with("duration", "10s"))
	case f.all && (len(args) > 0 || cmd.Flags().Changed("pid") || cmd.Flags().Changed("ns-pid")):
		return usageError(cmd, "--all and a JVM exclude each other", without("all"))
	case f.all && f.output != "" && !strings.Contains(strings.ReplaceAll(f.output, "%%", ""), "%p"):
		return usageError(cmd, "several JVMs need a file each: -o snap-%p.zip", with("output", "snap-%p.zip"))
	}
	return nil
}

func (f *snapFlags) run(cmd *cobra.Command, args []string) error {
	if err := f.check(cmd, args); err != nil {
		return err
	}
	if err := checkProc(); err != nil {
		return err
	}
	targets, err := f.find(cmd, args)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	defer watchOver()()
	session.LetSysmonRest()
	guard.Enter(guard.ToRecord)
	makeRoom(snapEngines)
	line := terminal.NewStatusLine(cmd.ErrOrStderr())
	defer line.Wipe()
	var first error
	for i := range targets {
		if i > 0 && ctx.Err() != nil {
			break
		}
		err := (&snapping{flags: f, target: &targets[i], ctx: ctx, line: line}).run()
		switch {
		case err == nil:
		case first == nil:
			first = err
		default:
			exit.Tell(line, err)
		}
	}
	return first
}

// snapEngines is how many engines a snap runs at the same time: two for triage, two for the recording.
const snapEngines = 4

// snapTarget is a JVM with the facts that goprof must read before it gives up its rights. They are for doctor.
type snapTarget struct {
	pid    int
	jvm    *diagnose.JVM // its entry in the list; nil if it is not listed
	doctor diagnose.Report
}

// find finds the JVMs. A process that is not a JVM is refused before a file is made.
func (f *snapFlags) find(cmd *cobra.Command, args []string) (targets []snapTarget, err error) {
	pid := 0
	if !f.all {
		if pid, err = f.jvm.find(cmd, args); err != nil {
			return nil, err
		}
	}
	jvms := exit.Host().JVMs()
	for i := range jvms {
		if f.all || jvms[i].PID == pid {
			targets = append(targets, snapTarget{pid: jvms[i].PID, jvm: &jvms[i]})
		}
	}
	switch {
	case f.all && len(targets) == 0:
		return nil, &exit.Error{Code: exit.NoSuchProcess, What: "goprof sees no JVM on this host", Remedy: "goprof doctor"}
	case len(targets) == 0:
		targets = []snapTarget{{pid: pid}}
	}
	for i := range targets {
		t := &targets[i]
		h := diagnose.Host{Command: exit.CommandLine(doctored(os.Args, t.pid))}
		t.doctor = h.Examine(t.pid)
		if c := t.doctor.Cause; c != nil && !f.all && (c.Class == diagnose.NoProcess || c.Class == diagnose.NotJVM) {
			return nil, exit.OfCause(fmt.Sprintf("cannot look at process %d", t.pid), *c, nil)
		}
	}
	return targets, nil
}

// reserve checks that the file can be written.
func (f *snapFlags) reserve(pid int) (*outfile.File, error) {
	switch {
	case f.output != "":
		return outfile.Reserve(outfile.Expand(f.output, pid, time.Now()))
	case f.all:
		return outfile.ReserveNumbered(fmt.Sprintf("snap-%d.zip", pid), nil)
	}
	return outfile.ReserveNumbered("snap.zip", nil)
}
