//go:build !linux

package main

import (
	"runtime"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
)

// platform replaces the commands that need Linux by commands that report this.
var platform = []func() *cobra.Command{
	needsLinux("list", "List the JVMs of this host"),
	needsLinux("record", "Sample a JVM's stacks into a file"),
	newTriage,
	needsLinux("snap", "Keep in one file what can be seen of a JVM, before a restart"),
	newDump,
	needsLinux("events", "List what record --event can take samples of in a JVM"),
	needsLinux("locks", "Show deadlocks of a JVM, and which threads wait for whose locks"),
	needsLinux("heap", "Show what fills the heap of a JVM, by class, and what grows"),
	needsLinux("memory", "Show where the resident memory of a JVM is, and what grows"),
	needsLinux("top", "Watch a JVM's threads and methods in the terminal"),
	needsLinux("slow", "Show the slowest requests, and what each of them waited for"),
	needsLinux("agent", "Record all JVMs of this host, all the time"),
	needsLinux("doctor", "Say what would work here and what mends the rest"),
}

func needsLinux(name, short string) func() *cobra.Command {
	return func() *cobra.Command {
		return &cobra.Command{
			Use:                name,
			Short:              short + " (needs Linux)",
			DisableFlagParsing: true,
			RunE: func(*cobra.Command, []string) error {
				return &exit.Error{
					Code:   exit.General,
					What:   "cannot " + name,
					Why:    "processes can be looked at on Linux only, and this is " + runtime.GOOS,
					Remedy: "goprof " + name + " on the machine where the JVM runs, and goprof flame or report here",
				}
			},
		}
	}
}
