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

// watchdogName is the command with which goprof starts its watchdog. With watchdogTerminal and the terminal's modes the
// watchdog also restores the terminal.
const watchdogName, watchdogTerminal = "watchdog", "--terminal="

// watchOver makes sure, until end is called, that a stopped goprof holds no thread, whether it was stopped by Ctrl-Z or
// SIGSTOP.
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
