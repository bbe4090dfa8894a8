//go:build linux

package main

import (
	"io"

	"goprof/cmd/goprof/product"
	"goprof/output"
	"goprof/output/format"
	"goprof/output/outfile"
	"goprof/profile"
)

// tellAccount writes the account of a recording, with all details if they were asked for. If the recording has no
// names, neither has the account: logs are read by others, too.
func (r *recorder) tellAccount(talk io.Writer, sum *profile.Summary) {
	if r.out.names != nil {
		sum = r.out.names.Of(&product.Recorded{Summary: sum}).Summary
	}
	output.SummaryText(talk, sum)
	if r.flags.verbose {
		output.SummaryDetails(talk, sum)
	}
}

// tellWritten says where the recording is, and how to look at it.
func tellWritten(talk io.Writer, name string, as format.Format, wall bool) {
	if name == outfile.Stdout {
		return
	}
	text := output.Printable(name)
	if next := nextStep(name, as, wall); next != "" {
		text += "   next: " + output.Printable(next)
	}
	io.WriteString(talk, output.AccountLine("Written", text))
}

// nextStep returns the command or the program that shows a recording best.
func nextStep(name string, as format.Format, wall bool) string {
	if name[0] == '-' {
		name = "./" + name
	}
	switch {
	case as.Viewer() != "":
		return "open it in " + as.Viewer()
	case !as.Read():
		return ""
	case as == format.JFR && !wall:
		return commandLine([]string{"goprof", "heat", name})
	case wall:
		return commandLine([]string{"goprof", "report", name})
	}
	return commandLine([]string{"goprof", "flame", name})
}
