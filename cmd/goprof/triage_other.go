//go:build !linux

package main

import (
	"runtime"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output/outfile"
)

// newTriage reads crash files and core files on any operating system. Only Linux lets it look at a process.
func newTriage() *cobra.Command {
	var core coreFile
	var to triageOutput
	var hide redactFlags
	cmd := &cobra.Command{
		Use:   "triage {hs_err_pidN.log | --core FILE}",
		Short: "Say what a crash means by its file or core file (a running JVM needs Linux)",
		Args:  atMostOne,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := core.check(cmd, args); err != nil {
				return err
			}
			if to.by, err = hide.redactor(cmd, outfile.Stdout); err != nil {
				return err
			}
			switch {
			case core.file != "":
				err = triageCore(cmd, &core, to)
			case len(args) == 0:
				return usageError(cmd, "missing FILE")
			case isCrashFile(args[0]):
				err = explainCrash(args[0], to)
			default:
				return &exit.Error{Code: exit.General, What: "cannot triage " + args[0],
					Why: "it is no crash file, and processes can be looked at on Linux only, and this is " +
						runtime.GOOS,
					Remedy: "goprof triage on the machine where the JVM runs"}
			}
			return hide.thenMap(err)
		},
	}
	core.addFlags(cmd)
	cmd.Flags().BoolVar(&to.json, "json", false, "write JSON")
	hide.add(cmd)
	return cmd
}
