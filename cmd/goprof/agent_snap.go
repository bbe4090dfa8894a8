//go:build linux

package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"goprof/agent/alarm"
	"goprof/cmd/goprof/internal/snapper"
)

func newSnapper() *cobra.Command {
	var on string
	var o snapper.Options
	var redacted redactFlags
	cmd := &cobra.Command{
		Use:    snapper.Command,
		Short:  "Take snaps of JVMs at alarms (started by agent)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Rules, err = alarm.Parse(on); err != nil {
				return usageError(cmd, err.Error())
			}
			o.Say = func(text string) { fmt.Fprintln(cmd.ErrOrStderr(), "goprof: "+text) }
			for flag, value := range map[string]string{"redact": redacted.policy, "redact-key": redacted.key} {
				if value != "" {
					o.Flags = append(o.Flags, "--"+flag, value)
				}
			}
			signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGUSR2) // the process ends when its input ends
			snapper.Watch(o, os.Stdin)
			return nil
		},
	}
	cmd.Flags().StringVar(&on, "on", "", "`alarms`")
	cmd.Flags().StringVar(&o.Dir, "dir", "", "`folder`")
	cmd.Flags().StringVar(&o.Files, "files", snapper.NoFiles, "`folder` of the agent's files")
	redacted.add(cmd)
	return cmd
}
