//go:build linux

package main

import (
	"github.com/spf13/cobra"

	"goprof/sampler/session"
)

// watchdogName is the command by which goprof starts itself to be watched over.
const watchdogName = "watchdog"

func newWatchdog() *cobra.Command {
	return &cobra.Command{
		Use:    watchdogName,
		Short:  "Watch over a goprof that may be stopped (started by record)",
		Hidden: true,
		Args:   cobra.NoArgs,
		Run:    func(*cobra.Command, []string) { session.Watch() },
	}
}
