//go:build linux

package main

import (
	"os/signal"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"goprof/sampler/session"
)

// watchdogName is the command by which goprof starts itself to be watched over. With watchdogTerminal it also puts the
// terminal right that a screen was drawn on.
const watchdogName, watchdogTerminal = "watchdog", "--terminal"

func newWatchdog() *cobra.Command {
	var terminal bool
	cmd := &cobra.Command{
		Use:    watchdogName,
		Short:  "Watch over a goprof that may be stopped (started by record and top)",
		Hidden: true,
		Args:   cobra.NoArgs,
		Run: func(*cobra.Command, []string) {
			var keeper terminalKeeper
			if terminal {
				signal.Ignore(unix.SIGTTOU, unix.SIGHUP)
				keeper = keepTerminal()
			}
			session.Watch()
			keeper.restore()
		},
	}
	cmd.Flags().BoolVar(&terminal, watchdogTerminal[2:], false, "put the terminal right at the end")
	return cmd
}
