package main

import (
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/triage/hserr"
)

// crashHead is how much of a file goprof reads to recognize a crash file.
const crashHead = 4 << 10

// isCrashFile reports whether an argument is a crash file of HotSpot. A number is a process, never a file.
func isCrashFile(name string) bool {
	if _, err := strconv.Atoi(name); err == nil {
		return false
	}
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	file, err := os.Open(name)
	if err != nil {
		return false
	}
	defer file.Close()
	head := make([]byte, crashHead)
	n, _ := io.ReadFull(file, head)
	return hserr.Is(head[:n])
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
