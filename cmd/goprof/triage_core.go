package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output/findings"
	"goprof/output/outfile"
	"goprof/profile"
	"goprof/session/postmortem"
	"goprof/triage/autopsy"
	"goprof/unwind"
)

// triageOutput is the form in which findings are written.
type triageOutput struct {
	json bool
	redactFlags
}

func triageCore(cmd *cobra.Command, core *coreFile, to triageOutput) error {
	core.by = to.by
	o, err := core.open(cmd)
	if err != nil {
		return err
	}
	defer o.Close()
	dump, err := o.dump(cmd, postmortem.Options{Depth: unwind.DefaultDepth, Locks: true, Virtual: o.HasVirtual()}, false)
	if err != nil {
		return err
	}
	facts := o.Facts()
	found := autopsy.Judge(dump, facts, exit.CommandLine([]string{core.file}))
	if report, name := o.crashFile(cmd); report != nil {
		autopsy.Beside(found, dump, facts, report, name)
	}
	return to.tell(cmd, found, core.file)
}

// tell writes the findings, and returns the error with the exit code.
func (o triageOutput) tell(cmd *cobra.Command, found *profile.Triage, about string) error {
	if o.by != nil {
		o.by.Triage(found)
	}
	if err := writeResult(cmd, outfile.Stdout, func(w io.Writer) error {
		if o.json {
			return findings.JSON(w, found)
		}
		return findings.Text(w, found)
	}); err != nil {
		return err
	}
	return foundError(about, found.Findings)
}

// foundError returns triage's error, or nil without findings.
func foundError(about string, all []profile.Finding) error {
	if len(all) == 0 {
		return nil
	}
	var ids []string
	for _, f := range all {
		ids = append(ids, string(f.ID))
	}
	return &exit.Error{Code: exit.Found, What: about + ": " + strings.Join(ids, ", ")}
}
