//go:build !linux

package main

import (
	"runtime"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
)

// newTriage reads crash files on any operating system; a process can be looked at on Linux alone.
func newTriage() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "triage hs_err_pidN.log",
		Short: "Say what the file of a crash means (a running JVM needs Linux)",
		Args:  exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if isCrashFile(args[0]) {
				return crashed(cmd, args[0], asJSON)
			}
			return &exit.Error{Code: exit.General, What: "cannot triage " + args[0],
				Why: "it is no crash file, and processes can be looked at on Linux only, and this is " +
					runtime.GOOS,
				Remedy: "goprof triage on the machine where the JVM runs"}
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}
