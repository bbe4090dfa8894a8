package main

import (
	_ "embed"
	"goprof/cmd/goprof/exit"
	"io"

	"github.com/spf13/cobra"
)

// notices holds the licences of all code in this program. `go run ./scripts/release notices` writes the file.
//
//go:embed THIRD_PARTY_NOTICES
var notices string

func newLicenses() *cobra.Command {
	return &cobra.Command{
		Use:   "licenses",
		Short: "Show the licences of goprof and of all code in it",
		Example: `  goprof licenses | less
  goprof licenses > THIRD_PARTY_NOTICES`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), notices)
			return exit.CannotWrite(err)
		},
	}
}
