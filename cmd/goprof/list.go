//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/internal/hosttext"
	"goprof/diagnose"
	"goprof/output/outfile"
	"goprof/sampler/guard"
)

const listHelp = `list shows the JVMs of this host, those of other users and in containers too, as far as
goprof may see them. It stops no thread.

CPU is the share of one CPU that a JVM uses at this moment. IN CONTAINER is the number
that the process has in its own pid namespace: the other commands take it with --ns-pid, and
the one under PID with --pid. CONTAINER is the container's id or name, from its cgroup.

Arguments are left out, because they may hold passwords: --args shows them. On a terminal a line ends
at its edge: --wide shows all of it.`

const listExample = `  goprof list
  goprof list petclinic                          those with that in their main class or jar, or that pid
  goprof list --args
  goprof list --json | jq '.jvms[] | select(.cpu_percent > 50) | .pid'`

func newList() *cobra.Command {
	var withArgs, asJSON, wide bool
	cmd := &cobra.Command{
		Use:     "list [PID | NAME]",
		Short:   "List the JVMs of this host",
		Long:    listHelp,
		Example: listExample,
		Args:    atMostOne,

		ValidArgsFunction: completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkProc(); err != nil {
				return err
			}
			guard.Enter(guard.ToLook)
			jvms := exit.Host().JVMs()
			if len(args) > 0 {
				if jvms = thoseCalled(jvms, args[0]); len(jvms) == 0 {
					return noneListed(args[0])
				}
			}
			return writeResult(cmd, outfile.Stdout, func(w io.Writer) error {
				if asJSON {
					return hosttext.ListJSON(w, jvms, withArgs)
				}
				columns := terminalColumns()
				if wide {
					columns = 0
				}
				return hosttext.List(w, jvms, withArgs, columns)
			})
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&withArgs, "args", false, "with the options and arguments, which may hold passwords")
	cmd.Flags().BoolVar(&wide, "wide", false, "do not cut lines to the terminal")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

// terminalColumns returns the width of standard output, or 0 if it is not a terminal.
func terminalColumns() int {
	columns, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// thoseCalled returns the JVMs with that name. A number is a pid.
func thoseCalled(jvms []diagnose.JVM, name string) []diagnose.JVM {
	pid, err := strconv.Atoi(name)
	return slices.DeleteFunc(jvms, func(j diagnose.JVM) bool {
		if err == nil {
			return j.PID != pid
		}
		return !j.Fits(name)
	})
}

// noneListed returns the error that no JVM has that name. For a number it says which process has that pid.
func noneListed(name string) error {
	pid, err := strconv.Atoi(name)
	if err != nil || pid <= 0 {
		return noneCalled(name)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err != nil {
		return &exit.Error{Code: exit.NoSuchProcess, What: fmt.Sprintf("there is no process %d", pid), Remedy: "goprof list"}
	}
	return &exit.Error{Code: exit.NotJVM, What: fmt.Sprintf("process %d runs no JVM", pid), Remedy: "goprof list"}
}
