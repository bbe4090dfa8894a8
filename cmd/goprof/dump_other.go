//go:build !linux

package main

import "github.com/spf13/cobra"

// newDump returns the command for core files, which does not need Linux.
func newDump() *cobra.Command {
	d := &dumpFlags{}
	cmd := &cobra.Command{
		Use:     "dump --core FILE",
		Short:   "Show what every thread of a JVM did when it died (live JVMs: on Linux)",
		Long:    "dump shows every thread of a JVM out of its core file, with its whole stack. See docs/cores.md.",
		Example: "  goprof dump --core core.1234 --root ./image",
	}
	cmd.RunE = d.runs(func(cmd *cobra.Command, args []string) error {
		if err := d.core.check(cmd, args); err != nil {
			return err
		}
		if d.core.file == "" {
			return needsLinux("dump", "")().RunE(cmd, args)
		}
		if err := d.check(cmd); err != nil {
			return err
		}
		return d.dead(cmd)
	}, &d.output)
	cmd.Flags().SortFlags = false
	d.add(cmd)
	return cmd
}
