//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/internal/recorder"
	"goprof/diagnose"
	"goprof/output"
	"goprof/output/format"
)

// chosen says which JVMs the command line names. One of its fields is set.
type chosen struct {
	pids    []int
	name    string
	inner   int // the pid in the JVM's container; name may narrow the choice
	wait    string
	program *program
}

// choose reads the command line: "--pid N...", "NAME", "--wait NAME", or "-- PROGRAM ARG...".
func (f *recordFlags) choose(cmd *cobra.Command, args []string) (*chosen, error) {
	if err := checkInner(cmd, f.nsPID); err != nil {
		return nil, err
	}
	c := &chosen{pids: slices.Compact(slices.Sorted(slices.Values(f.pids))), wait: f.wait, inner: f.nsPID}
	ways := 0
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		if dash == len(args) {
			return nil, usageError(cmd, "which program? nothing follows --")
		}
		c.program, args = newProgram(args[dash:]), args[:dash]
		ways++
	}
	if len(args) > 1 {
		hint := "a program to start comes after --"
		if _, err := strconv.Atoi(args[0] + args[1]); err == nil {
			hint = fmt.Sprintf("several JVMs are --pid %s --pid %s; %s", args[0], args[1], hint)
		}
		return nil, usageError(cmd, fmt.Sprintf("one argument too many: %q (%s)", args[1], hint))
	}
	if len(args) == 1 && args[0] == "" || cmd.Flags().Changed("wait") && c.wait == "" {
		return nil, whichJVM("an empty name fits every JVM")
	}
	if len(args) == 1 {
		c.name = args[0]
	}
	if c.name != "" || c.inner != 0 {
		ways++
	}
	if len(c.pids) > 0 {
		ways++
	}
	if c.wait != "" {
		ways++
	}
	switch {
	case ways == 0:
		return nil, whichJVM("--pid is missing, or a part of its name")
	case ways > 1:
		return nil, usageError(cmd, "--pid, NAME, --wait and a program to start exclude each other", c.onlyOne()...)
	case len(c.pids) > 0 && c.pids[0] <= 0:
		return nil, usageError(cmd, fmt.Sprintf("%d is no process id", c.pids[0]))
	}
	return c, nil
}

// onlyOne returns fixes that keep only one way to name JVMs: the program to start, or else the pids, or else the name.
func (c *chosen) onlyOne() []fix {
	fixes := []fix{without("wait")}
	switch {
	case c.program != nil:
		fixes = append(fixes, without("pid", "ns-pid"), withoutWord(c.name))
	case len(c.pids) > 0:
		fixes = append(fixes, without("ns-pid"), withoutWord(c.name))
	}
	return fixes
}

// find finds the JVMs, or waits for them.
func (c *chosen) find(ctx context.Context, talk io.Writer) ([]recorder.JVM, error) {
	switch {
	case c.program != nil:
		s, err := c.program.attach(ctx)
		if err != nil {
			return nil, err
		}
		return []recorder.JVM{{PID: c.program.pid(), Session: s}}, nil
	case c.wait != "":
		pid, err := waitFor(ctx, talk, c.wait)
		return []recorder.JVM{{PID: pid}}, err
	case c.inner != 0:
		pid, err := inside(c.inner, c.name, "record")
		return []recorder.JVM{{PID: pid}}, err
	case c.name != "":
		pid, err := named(c.name, "record")
		return []recorder.JVM{{PID: pid}}, err
	}
	var all []recorder.JVM
	for _, pid := range c.pids {
		all = append(all, recorder.JVM{PID: pid})
	}
	return all, nil
}

// finish waits for the end of a started program.
func (c *chosen) finish(talk io.Writer) {
	if c.program != nil {
		c.program.finish(talk)
	}
}

// named returns the only JVM with part in its main class or jar. A number is a pid.
func named(part, command string) (int, error) {
	if pid, err := strconv.Atoi(part); err == nil && pid > 0 {
		return pid, nil
	}
	if err := checkProc(); err != nil {
		return 0, err
	}
	return oneOf(exit.Host().Match(part), noneCalled(part),
		fmt.Sprintf("have %q in their main class or jar", part), command)
}

// oneOf returns the only JVM that was found. what names what several have in common.
func oneOf(found []diagnose.JVM, none error, what, command string) (int, error) {
	switch len(found) {
	case 0:
		return 0, none
	case 1:
		return found[0].PID, nil
	}
	return 0, &exit.Error{Code: exit.General, What: fmt.Sprintf("%d JVMs %s", len(found), what), Why: namesOf(found),
		Remedy: fmt.Sprintf("goprof %s --pid %d", command, found[0].PID)}
}

// whichJVM returns the error of a command line that does not name a JVM.
func whichJVM(why string) error {
	return &exit.Error{Code: exit.General, What: "which JVM? " + why, Remedy: "goprof list"}
}

func noneCalled(part string) error {
	e := &exit.Error{Code: exit.NoSuchProcess, What: fmt.Sprintf("no JVM has %q in its main class or jar", part),
		Remedy: "goprof list"}
	if end := strings.ToLower(filepath.Ext(part)); end == ".zip" || slices.Contains(format.Extensions(), end) {
		e.Why = "there is no file of that name, either"
	}
	return e
}

// namesOf lists the names of some JVMs.
func namesOf(jvms []diagnose.JVM) string {
	const most = 10
	var names []string
	for i := range jvms[:min(len(jvms), most)] {
		name := fmt.Sprintf("%d %s", jvms[i].PID, output.Printable(jvms[i].Name()))
		if id := jvms[i].Container; id != "" {
			name += " in container " + id
		}
		names = append(names, name)
	}
	if len(jvms) > most {
		names = append(names, "...")
	}
	return strings.Join(names, ", ")
}

// waitEvery is how often goprof looks for the awaited JVM.
const waitEvery = 200 * time.Millisecond

// waitFor waits until a JVM of that name runs. It also accepts one that already runs.
func waitFor(ctx context.Context, talk io.Writer, part string) (int, error) {
	if err := checkProc(); err != nil {
		return 0, err
	}
	fmt.Fprintf(talk, "goprof: waiting for a JVM with %q in its main class or jar\n", output.Printable(part))
	for {
		ready := slices.DeleteFunc(exit.Host().Match(part),
			func(j diagnose.JVM) bool { return j.Problem != nil && j.Problem.Class == diagnose.NotJVM })
		switch {
		case len(ready) == 1:
			return ready[0].PID, nil
		case len(ready) > 1:
			return named(part, "record") // named reports which JVMs there are
		}
		select {
		case <-ctx.Done():
			return 0, &exit.Error{Code: exit.NoSuchProcess,
				What: fmt.Sprintf("no JVM came with %q in its main class or jar", part), Remedy: "goprof list"}
		case <-time.After(waitEvery):
		}
	}
}
