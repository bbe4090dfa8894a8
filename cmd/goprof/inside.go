//go:build linux

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
)

// addInner adds --ns-pid to a command for one JVM.
func addInner(cmd *cobra.Command, inner *int) {
	cmd.Flags().IntVar(inner, "ns-pid", 0, "`PID` of the JVM as its container counts, instead of --pid; with NAME where "+
		"several have it")
}

func checkInner(cmd *cobra.Command, inner int) error {
	if cmd.Flags().Changed("ns-pid") && inner <= 0 {
		return usageError(cmd, fmt.Sprintf("%d is no process id", inner))
	}
	return nil
}

// inside returns the JVM with the number inner in its container and with part in its main class or jar. If several
// containers have such a JVM, it returns an error.
func inside(inner int, part, command string) (int, error) {
	if err := checkProc(); err != nil {
		return 0, err
	}
	what := fmt.Sprintf("have the number %d in a container", inner)
	if part != "" {
		what += fmt.Sprintf(" and %q in their main class or jar", part)
	}
	return oneOf(exit.Host().MatchInner(inner, part), &exit.Error{Code: exit.NoSuchProcess,
		What: "there are no JVMs that " + what, Remedy: "goprof list"}, what, command)
}

// checkProc returns why no process can be found, if that is so.
func checkProc() error {
	if c := exit.Host().CheckProc(); c != nil {
		return exit.OfCause("cannot look for JVMs", *c, nil)
	}
	return nil
}
