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

// completeNames completes NAME with the running JVMs.
func completeNames(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if len(args) == 0 {
		for _, j := range exit.Host().Match("") {
			names = append(names, cobra.CompletionWithDesc(output.Printable(j.Name()), strconv.Itoa(j.PID)))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeRecord leaves the completion of a program to start, after "--", to the shell. Cobra adds a "--" of its own to
// the words so far, so only the words themselves show whether the user typed one.
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
