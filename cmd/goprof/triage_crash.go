package main

import (
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/findings"
	"goprof/sampler/hserr"
)

// crashHead is how much of a file tells that it is a crash file.
const crashHead = 4 << 10

// isCrashFile reports whether an argument names the file that a crash of HotSpot leaves. The number of a process is
// never taken for a file.
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

// crashed says what a crash file means.
func crashed(_ *cobra.Command, name string, asJSON bool) error {
	file, err := os.Open(name)
	if err != nil {
		return badInput(name, err)
	}
	defer file.Close()
	report, err := hserr.Parse(file)
	if err != nil {
		return badInput(name, &output.BadFile{Problem: err.Error()})
	}
	out, err := output.Reserve(output.Stdout)
	if err != nil {
		return outputFailed(err)
	}
	found := hserr.Judge(report)
	if _, err := out.Write(func(w io.Writer) error {
		if asJSON {
			return findings.JSON(w, found)
		}
		return findings.Text(w, found)
	}); err != nil {
		return outputFailed(err)
	}
	if len(found.Findings) == 0 {
		return nil
	}
	return &exit.Error{Code: exit.Found, What: name + ": " + string(found.Findings[0].ID)}
}
