package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output/outfile"
)

// writeResult writes to standard output or a file.
func writeResult(cmd *cobra.Command, name string, write func(io.Writer) error) error {
	if name == outfile.Stdout && cmd.OutOrStdout() != os.Stdout {
		return write(cmd.OutOrStdout())
	}
	file, err := outfile.Reserve(name)
	if err == nil {
		_, err = file.Write(write)
	}
	return exit.CannotWrite(err)
}

// inForm chooses JSON or text.
func inForm(asJSON bool, json, text func(io.Writer) error) func(io.Writer) error {
	if asJSON {
		return json
	}
	return text
}
