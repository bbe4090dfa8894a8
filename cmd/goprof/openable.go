package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"goprof/output/format"
	"goprof/output/outfile"
)

// checkOpen refuses --open for a file that neither a browser nor flame can show. name is empty if goprof chooses it.
// Pages and pictures are recognized by their names.
func checkOpen(cmd *cobra.Command, name string, as format.Format) error {
	if flag := cmd.Flags().Lookup("open"); flag == nil || flag.Value.String() != "true" {
		return nil
	}
	end := filepath.Ext(name)
	named := end == ".html" || end == ".svg"
	switch page := as.Drawn(); {
	case name == outfile.Stdout:
		return usageError(cmd, "--open shows a file, and this goes to standard output", without("open"))
	case !page && !as.Read():
		return usageError(cmd, "--open shows pages, pictures, and what goprof reads again: not "+as.String(),
			without("open"))
	case name != "" && page != named:
		return usageError(cmd, "--open recognises pages and pictures by their names: .html, .svg", without("open"))
	}
	return nil
}
