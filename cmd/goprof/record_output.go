//go:build linux

package main

import (
	"io"
	"time"

	"goprof/output"
	"goprof/profile"
)

// outputs are the files that a recording ends in. They are checked before it begins.
type outputs struct{ stacks, summary *output.File }

// reserve finds the files for the recording of a process.
func (f *recordFlags) reserve(pid int) (outputs, error) {
	var o outputs
	var err error
	switch {
	case f.output != "":
		o.stacks, err = output.Reserve(output.Expand(f.output, pid, time.Now()))
	case len(f.pids) > 1:
		o.stacks, err = output.ReserveNumbered(output.Expand("out-%p.collapsed", pid, time.Now()))
	default:
		o.stacks, err = output.ReserveNumbered("out.collapsed")
	}
	if err == nil && f.summary != "" {
		o.summary, err = output.Reserve(output.Expand(f.summary, pid, time.Now()))
	}
	return o, err
}

// write writes both files and returns the name of the first.
func (o *outputs) write(p *profile.Profile, sum *profile.Summary) (string, error) {
	return o.writeBoth(func(w io.Writer) error { return output.Collapsed(w, p) }, sum)
}

func (o *outputs) writeText(stacks []byte, sum *profile.Summary) (string, error) {
	return o.writeBoth(func(w io.Writer) error { _, err := w.Write(stacks); return err }, sum)
}

func (o *outputs) writeBoth(stacks func(io.Writer) error, sum *profile.Summary) (string, error) {
	name, err := o.stacks.Write(stacks)
	if err != nil {
		return "", err
	}
	if o.summary == nil && name != output.Stdout {
		// Beside the stacks, where "goprof flame" looks for what it says about them.
		if o.summary, err = output.Reserve(output.SummaryPath(name)); err != nil {
			return "", err
		}
	}
	return name, o.writeSummary(sum)
}

// writeSummary writes the account, where there is a file for it.
func (o *outputs) writeSummary(sum *profile.Summary) error {
	if o.summary == nil {
		return nil
	}
	_, err := o.summary.Write(func(w io.Writer) error { return output.WriteSummary(w, sum) })
	return err
}
