package main

import (
	"time"

	"github.com/spf13/cobra"
)

// newWait returns the command that an ephemeral container runs if its image holds only goprof. kubectl-goprof runs
// other commands beside it.
func newWait() *cobra.Command {
	return &cobra.Command{
		Use:    "wait TIME",
		Short:  "Do nothing for a while (keeps the container of kubectl-goprof)",
		Hidden: true,
		Args:   exactly("TIME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var d durationFlag
			if err := d.Set(args[0]); err != nil {
				return usageError(cmd, err.Error())
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			select {
			case <-ctx.Done():
			case <-time.After(time.Duration(d)):
			}
			return nil
		},
	}
}
