package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"goprof/output"
	"goprof/output/dumps"
	"goprof/profile"
	"goprof/session/postmortem"
)

// coreDump is what the command line asks of dump --core.
type coreDump struct {
	coreFile
	format, output    string
	shape             dumps.Shape
	opt               postmortem.Options
	hideInternal, raw bool
}

func (d *coreDump) run(cmd *cobra.Command) error {
	o, err := d.open(cmd)
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
		dump.Threads = onlyDeadlocked(dump.Threads)
	}
	if d.by != nil {
		d.by.Dump(dump)
	}
	return out.write(true, func(w io.Writer) error { return writeDump(w, dump, d.format, d.shape) })
}

// tellVirtualWaits says why a deadlock of virtual threads may not be shown.
func tellVirtualWaits(to io.Writer, v *profile.VirtualWaits) {
	if why := v.Unread(); why != "" {
		fmt.Fprintf(to, "goprof: %s; a deadlock of theirs may be missing\n", output.Printable(why))
	}
}
