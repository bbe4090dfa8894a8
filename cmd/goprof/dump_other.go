//go:build !linux

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"goprof/output/outfile"
	"goprof/unwind"
)

// newDump makes the command that dumps core files. That needs no Linux.
func newDump() *cobra.Command {
	d := &coreDump{}
	var hide redactFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "dump --core FILE",
		Short:   "Show what every thread of a JVM did when it died (live JVMs: on Linux)",
		Long:    "dump shows every thread of a JVM out of its core file, with its whole stack. See docs/cores.md.",
		Example: "  goprof dump --core core.1234 --root ./image",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := d.check(cmd, args); err != nil {
				return err
			}
			if d.file == "" {
				return needsLinux("dump", "")().RunE(cmd, args)
			}
			d.format = dumpFormat(cmd, d.format, asJSON, d.output)
			if !slices.Contains(dumpFormats, d.format) {
				return usageError(cmd, fmt.Sprintf("--format is one of %s, not %q", strings.Join(dumpFormats, ", "), d.format),
					with("format", "text"))
			}
			if d.format == dumpAsJSON && !cmd.Flags().Changed("native") {
				d.shape.Native = true
			}
			var err error
			if d.by, err = hide.redactor(cmd, d.output); err != nil {
				return err
			}
			return hide.thenMap(d.run(cmd))
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	d.addFlags(cmd)
	fs.StringVarP(&d.format, "format", "f", dumpAsText, "`format`: "+strings.Join(dumpFormats, ", "))
	fs.BoolVar(&asJSON, "json", false, "write JSON, as --format json")
	fs.StringVarP(&d.output, "output", "o", outfile.Stdout, outputUsage)
	fs.BoolVar(&d.shape.Group, "group", false, "show threads with the same stack and state once")
	fs.BoolVar(&d.shape.Native, "native", false, "show the JVM's own frames below Java, too")
	fs.BoolVar(&d.opt.Locks, "locks", true, "say what threads hold, and whose locks they wait for")
	fs.BoolVar(&d.opt.Virtual, "virtual", false, "also show virtual threads that no carrier ran")
	fs.IntVar(&d.opt.Depth, "depth", unwind.DefaultDepth, "`frames` that a stack may have")
	fs.BoolVar(&d.hideInternal, "hide-internal", false, hideInternalUsage)
	fs.BoolVar(&d.raw, "raw-names", false, rawNamesUsage)
	hide.add(cmd)
	return cmd
}
