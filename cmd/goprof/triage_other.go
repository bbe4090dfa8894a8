//go:build !linux

package main

import (
	"runtime"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
)

// newTriage reads crash files and core files on any operating system. Live processes need Linux.
func newTriage() *cobra.Command {
	var core coreFile
	var to triageOutput
	cmd := &cobra.Command{
		Use:   "triage {hs_err_pidN.log | --core FILE}",
		Short: "Say what a crash means by its file or core file (a running JVM needs Linux)",
		Args:  atMostOne,
	}
	cmd.RunE = to.runs(func(cmd *cobra.Command, args []string) error {
		switch err := core.check(cmd, args); {
		case err != nil:
			return err
		case core.file != "":
			return triageCore(cmd, &core, to)
		case len(args) == 0:
			return usageError(cmd, "missing FILE")
		case isCrashFile(args[0]):
			return explainCrash(cmd, args[0], to)
		}
		return &exit.Error{Code: exit.General, What: "cannot triage " + args[0],
			Why:    "it is no crash file, and processes can be looked at on Linux only, and this is " + runtime.GOOS,
			Remedy: "goprof triage on the machine where the JVM runs"}
	}, &stdout)
	core.addFlags(cmd)
	cmd.Flags().BoolVar(&to.json, "json", false, "write JSON")
	to.redactFlags.add(cmd)
	return cmd
}
