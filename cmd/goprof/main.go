// Command goprof profiles a running HotSpot JVM from outside. Each command has its own file here, which parses flags,
// calls packages, and reports errors.
package main

import (
	"io"
	"os"

	_ "goprof/arch/entry" // the program's entry point

	"goprof/cmd/goprof/exit"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the whole program except for the exit of its process.
func run(args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return int(exit.Tell(stderr, root.Execute()))
}
