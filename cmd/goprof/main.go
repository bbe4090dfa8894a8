// Command goprof profiles a running HotSpot JVM from outside. Each command is a file
// of its own here: flags in, packages called, errors told.
package main

import (
	"io"
	"os"

	_ "goprof/arch/entry" // where the program begins

	"goprof/cmd/goprof/exit"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the whole program except for the end of its process.
func run(args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return int(exit.Tell(stderr, root.Execute()))
}
