package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/recording"
	"goprof/profile"
)

// files reports files or peers. Their figures are sums of the whole recording, not samples.
func (f *reportFlags) files(cmd *cobra.Command, name string) error {
	if given := givenOf(cmd, sampleFlags); len(given) > 0 {
		return usageError(cmd, fmt.Sprintf("--%s is for samples, and --by %s has the sums of the whole recording", given[0],
			f.by), without(given...))
	}
	if err := exit.NotItself(name, f.to); err != nil {
		return err
	}
	if f.input.event == "" {
		f.input.all = true
	}
	in, err := f.input.open(cmd, name)
	if err != nil {
		return err
	}
	defer in.Close()
	sums := sumsOfIO(in.src.Info())
	if sums == nil {
		return &exit.Error{Code: exit.BadInput, What: "there are no sums of files and peers in " + output.CleanName(name),
			Why:    "only goprof record --event io counts them",
			Remedy: "goprof record PID -d 30s --event io -o io.jfr; of other recorders' files: --event jdk.FileRead --by path"}
	}
	json, text := output.IOReport(sums, f.by, f.top)
	return writeResult(cmd, f.to, inForm(f.asJSON, json, text))
}

// sumsOfIO returns the sums in the account of a recording or one of its parts, or nil.
func sumsOfIO(about recording.Info) *profile.IO {
	if about.Summary != nil && about.Summary.IO != nil {
		return about.Summary.IO
	}
	for i := range about.Parts {
		if s := about.Parts[i].Summary; s != nil && s.IO != nil {
			return s.IO
		}
	}
	return nil
}
