//go:build linux

package main

import (
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output"
)

// completeNames completes NAME with the JVMs that run.
func completeNames(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if len(args) == 0 {
		for _, j := range exit.Host().Match("") {
			names = append(names, cobra.CompletionWithDesc(output.Printable(j.Name()), strconv.Itoa(j.PID)))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeRecord leaves a program to start, after "--", to the shell. (Cobra ends what is
// there so far with a "--" of its own, so only the words themselves tell.)
func completeRecord(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
	if slices.Contains(os.Args[:len(os.Args)-1], "--") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return completeNames(cmd, args, part)
}

func completePIDs(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var pids []string
	for _, j := range exit.Host().Match("") {
		pids = append(pids, cobra.CompletionWithDesc(strconv.Itoa(j.PID), output.Printable(j.Name())))
	}
	return pids, cobra.ShellCompDirectiveNoFileComp
}
