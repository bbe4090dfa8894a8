package main

import (
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/snap"
	"goprof/triage/hserr"
)

// crashHead is how much of a file goprof reads to recognize a crash file.
const crashHead = 4 << 10

// isCrashFile reports whether an argument is a crash file of HotSpot. A number is a process, never a file.
func isCrashFile(name string) bool {
	if _, err := strconv.Atoi(name); err == nil {
		return false
	}
	return hserr.Is(snap.Head(name, crashHead))
}

func explainCrash(cmd *cobra.Command, name string, to triageOutput) error {
	file, err := os.Open(name)
	if err != nil {
		return exit.CannotRead(name, err)
	}
	defer file.Close()
	report, err := hserr.Parse(file)
	if err != nil {
		return exit.CannotRead(name, &output.BadFile{Problem: err.Error()})
	}
	return to.tell(cmd, hserr.Judge(report), name)
}
