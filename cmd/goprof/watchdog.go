//go:build linux

package main

import (
	"os/signal"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"goprof/cmd/goprof/terminal"
	"goprof/session"
)

// watchdogName is the command by which goprof starts its own watchdog. With watchdogTerminal and the terminal's modes
// the watchdog also restores the terminal.
const watchdogName, watchdogTerminal = "watchdog", "--terminal="

// watchOver sees to it that a goprof that is stopped holds no thread, whether by Ctrl-Z or by force, until end is
// called.
func watchOver() (end func()) {
	polite, forced := session.StopAfterSuspend(), session.StartWatchdog(watchdogName)
	return func() { forced(); polite() }
}

func newWatchdog() *cobra.Command {
	var modes string
	cmd := &cobra.Command{
		Use:    watchdogName,
		Short:  "Watch over a goprof that may be stopped (started by record and top)",
		Hidden: true,
		Args:   cobra.NoArgs,
		Run: func(*cobra.Command, []string) {
			if modes != "" {
				signal.Ignore(unix.SIGTTOU, unix.SIGHUP)
				defer terminal.Keep(modes)()
			}
			session.Watch()
		},
	}
	name := strings.Trim(watchdogTerminal, "-=")
	cmd.Flags().StringVar(&modes, name, "", "`modes` that the terminal gets at the end")
	return cmd
}
