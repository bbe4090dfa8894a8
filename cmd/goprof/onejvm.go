//go:build linux

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/session"
)

// oneJVM is the JVM of a command for one JVM, as given by flags: dump, locks, top and triage.
type oneJVM struct{ pid, inner int }

func (j *oneJVM) addFlags(cmd *cobra.Command) {
	cmd.Flags().IntVarP(&j.pid, "pid", "p", 0, "`PID` of the JVM")
	addInner(cmd, &j.inner)
	cmd.RegisterFlagCompletionFunc("pid", completePIDs)
	cmd.ValidArgsFunction = completeNames
}

// find returns the pid of the JVM that flags and arguments name.
func (j *oneJVM) find(cmd *cobra.Command, args []string) (int, error) {
	given, inner := cmd.Flags().Changed("pid"), cmd.Flags().Changed("ns-pid")
	switch {
	case len(args) > 0 && given:
		return 0, usageError(cmd, "--pid and NAME exclude each other", without("pid"))
	case len(args) > 0 && args[0] == "":
		return 0, whichJVM("an empty name fits every JVM")
	case given && inner:
		return 0, usageError(cmd, "--pid and --ns-pid exclude each other", without("ns-pid"))
	case inner:
		if err := checkInner(cmd, j.inner); err != nil {
			return 0, err
		}
		return inside(j.inner, strings.Join(args, ""), cmd.Name())
	case len(args) > 0:
		return named(args[0], cmd.Name())
	case given && j.pid <= 0:
		return 0, usageError(cmd, fmt.Sprintf("%d is no process id", j.pid))
	case !given:
		return 0, whichJVM("--pid is missing, or a part of its name")
	}
	return j.pid, nil
}

// attach attaches to a JVM, and shows its doubts. stops says that threads will be stopped, which another tracer
// forbids.
func attach(cmd *cobra.Command, pid int, stops bool) (*session.Session, error) {
	s, err := session.Attach(pid)
	if err != nil {
		return nil, exit.CannotLook(pid, err)
	}
	if stops {
		if err := exit.Host().Traced(pid); err != nil {
			s.Close()
			return nil, exit.CannotLook(pid, err)
		}
	}
	exit.Doubts{}.Warn(cmd.ErrOrStderr(), s.Doubts())
	return s, nil
}
