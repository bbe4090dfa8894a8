package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output/findings"
	"goprof/output/outfile"
	"goprof/profile"
	"goprof/profile/redact"
	"goprof/session/postmortem"
	"goprof/triage/autopsy"
	"goprof/unwind"
)

// triageOutput is the form in which findings are written.
type triageOutput struct {
	json bool
	by   *redact.Redactor // nil: names stay as they are
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
	return to.tell(found, core.file)
}

// tell writes what was found, and returns the error with its exit code.
func (o triageOutput) tell(found *profile.Triage, about string) error {
	if o.by != nil {
		o.by.Triage(found)
	}
	out, err := outfile.Reserve(outfile.Stdout)
	if err != nil {
		return exit.CannotWrite(err)
	}
	if _, err := out.Write(func(w io.Writer) error { return o.write(w, found) }); err != nil {
		return exit.CannotWrite(err)
	}
	return foundError(about, found.Findings)
}

func (o triageOutput) write(w io.Writer, found *profile.Triage) error {
	if o.json {
		return findings.JSON(w, found)
	}
	return findings.Text(w, found)
}

// foundError is triage's error, nil if nothing was found.
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
