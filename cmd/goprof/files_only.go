//go:build linux

package main

import (
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goprof/output/outfile"
	"goprof/sampler/guard"
)

// readFilesOnly gives up the rights that a command does not need if it only reads files. A file may be malicious, so
// call readFilesOnly before any file is read.
func readFilesOnly(cmd *cobra.Command, args []string) {
	guard.EnterFiles(filesOf(cmd, args))
}

// writing are the flags whose values are files or folders that a command writes.
var writing = []string{"output", "map", "redact-map", "spool", "html"}

// filesOf returns the files in a command line. Arguments that are not names of files do no harm, because no such file
// exists.
func filesOf(cmd *cobra.Command, args []string) guard.Files {
	f := guard.Files{Read: slices.Clone(args), Write: []string{os.TempDir()}, Sends: cmd.Name() == "ship"}
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		if slices.Contains(writing, flag.Name) || flag.Name == "summary" && cmd.Name() == "convert" {
			f.Write = append(f.Write, values...)
		} else {
			f.Read = append(f.Read, values...)
		}
	})
	if flag := cmd.Flags().Lookup("output"); flag != nil && flag.Value.String() == "" {
		f.Write = append(f.Write, args...) // flame and heat write beside their input
	}
	isStream := func(name string) bool { return name == outfile.Stdout }
	f.Read, f.Write = slices.DeleteFunc(f.Read, isStream), slices.DeleteFunc(f.Write, func(name string) bool {
		return isStream(name) && cmd.Flags().Changed("output")
	})
	return f
}
