package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"goprof/output"
	"goprof/output/dumps"
	"goprof/output/outfile"
	"goprof/profile"
	"goprof/profile/contention"
	"goprof/session/postmortem"
	"goprof/unwind"
)

// dumpFlags are the flags of dumps that apply to live JVMs and core files.
type dumpFlags struct {
	core              coreFile
	format, output    string
	json              bool
	shape             dumps.Shape
	opt               postmortem.Options
	hideInternal, raw bool
	redactFlags
}

func (d *dumpFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	d.core.addFlags(cmd)
	fs.StringVarP(&d.format, "format", "f", dumpAsText, "`format`: "+strings.Join(dumpFormats, ", "))
	fs.BoolVar(&d.json, "json", false, "write JSON, as --format json")
	fs.StringVarP(&d.output, "output", "o", outfile.Stdout, "write to `file`; .json writes JSON")
	fs.BoolVar(&d.shape.Group, "group", false, "show threads with the same stack and state once")
	fs.BoolVar(&d.shape.Native, "native", false,
		"show the JVM's own frames below Java, too (JSON shows them unless --native=false)")
	fs.BoolVar(&d.opt.Locks, "locks", true, "say what threads hold, and whose locks they wait for")
	fs.BoolVar(&d.opt.Virtual, "virtual", false, "also show virtual threads that no carrier runs")
	fs.IntVar(&d.opt.Depth, "depth", unwind.DefaultDepth, "`frames` that a stack may have")
	fs.BoolVar(&d.hideInternal, "hide-internal", false, hideInternalUsage)
	fs.BoolVar(&d.raw, "raw-names", false, rawNamesUsage)
	d.redactFlags.add(cmd)
}

// check checks the flags. It finds the format by -f or by the name of the file.
func (d *dumpFlags) check(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	if d.json && given("format") && d.format != dumpAsJSON {
		return usageError(cmd, "--json and --format "+d.format+" exclude each other", without("json"))
	}
	if d.json || filepath.Ext(d.output) == ".json" && !given("format") {
		d.format = dumpAsJSON
	}
	if d.format == dumpAsJSON && !given("native") {
		d.shape.Native = true
	}
	jstack := d.format == dumpAsJstack
	switch {
	case !slices.Contains(dumpFormats, d.format):
		return usageError(cmd, fmt.Sprintf("--format is one of %s, not %q", strings.Join(dumpFormats, ", "), d.format),
			with("format", "text"))
	case jstack && d.shape.Group:
		return usageError(cmd, "--format jstack shows each thread by itself: --group is for text and json",
			without("group"))
	case jstack && d.opt.Virtual:
		return usageError(cmd,
			"--format jstack has no place for virtual threads that no carrier runs: text and json show them",
			without("virtual"))
	case jstack && given("native"):
		return usageError(cmd, "--format jstack shows Java frames alone: --native is for text and json",
			without("native"))
	}
	return checkDepth(cmd, d.opt.Depth)
}

const maxDepth = 1 << 20

func checkDepth(cmd *cobra.Command, depth int) error {
	if depth < 1 || depth > maxDepth {
		return usageError(cmd, fmt.Sprintf("--depth is between 1 and %d", maxDepth), without("depth"))
	}
	return nil
}

// dead dumps a core file.
func (d *dumpFlags) dead(cmd *cobra.Command) error {
	d.core.by = d.by
	o, err := d.core.open(cmd)
	if err != nil {
		return err
	}
	defer o.Close()
	o.Walker.RawNames = d.raw
	out, err := reserveDump(d.output)
	if err != nil {
		return err
	}
	dump, err := o.dump(cmd, d.opt, d.hideInternal)
	if err != nil {
		return err
	}
	tellVirtualWaits(cmd.ErrOrStderr(), &dump.Waits)
	if !d.opt.Virtual {
		dump.Threads = contention.OnlyDeadlocked(dump.Threads)
	}
	if d.by != nil {
		d.by.Dump(dump)
	}
	return out.write(true, func(w io.Writer) error { return writeDump(w, dump, d.format, d.shape) })
}

// tellVirtualWaits reports why a deadlock of virtual threads may be missing.
func tellVirtualWaits(to io.Writer, v *profile.VirtualWaits) {
	if why := v.Unread(); why != "" {
		fmt.Fprintf(to, "goprof: %s; a deadlock of theirs may be missing\n", output.Printable(why))
	}
}
