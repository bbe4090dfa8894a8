//go:build linux

package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/internal/hosttext"
	"goprof/diagnose"
	"goprof/output/outfile"
)

const doctorHelp = `doctor says what works on this host and what does not, and which command mends it. With --pid it
also looks at one process: whether goprof may read it, which process traces it, how well goprof
knows its JVM, and whether its native code has names.

  ok     works
  warn   works, but not on everything
  fail   stands in the way of recording
  info   does not work, and is not needed

doctor only reads: no thread is stopped. Its exit code is 0 if recording would work. Otherwise it is
the code with which recording would fail (goprof help exit-codes).`

const doctorExample = `  goprof doctor
  goprof doctor 1234
  goprof doctor --pid 1234 --json | jq '.checks[] | select(.verdict != "ok")'`

func newDoctor() *cobra.Command {
	var jvm oneJVM
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "doctor [PID | NAME | --ns-pid PID]",
		Short:   "Say what would work here and what mends the rest",
		Long:    doctorHelp,
		Example: doctorExample,
		Args:    atMostOne,

		RunE: func(cmd *cobra.Command, args []string) (err error) {
			pid := 0 // 0: only the machine is examined
			if len(args) > 0 || cmd.Flags().Changed("pid") || cmd.Flags().Changed("ns-pid") {
				if pid, err = jvm.find(cmd, args); err != nil {
					return err
				}
			}
			return doctor(cmd, pid, asJSON)
		},
	}
	cmd.Flags().SortFlags = false
	jvm.addFlags(cmd)
	cmd.Flags().Lookup("pid").Usage = "`PID` of a process to look at, too"
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

func doctor(cmd *cobra.Command, pid int, asJSON bool) error {
	h := diagnose.Host{Command: exit.CommandLine(doctored(os.Args, pid))}
	r := h.Examine(pid)
	err := writeResult(cmd, outfile.Stdout, func(w io.Writer) error {
		if asJSON {
			return hosttext.DoctorJSON(w, pid, &r)
		}
		return hosttext.Doctor(w, &r)
	})
	if err != nil || r.Cause == nil {
		return err
	}
	what := "recording would not work here"
	if pid != 0 {
		what = fmt.Sprintf("recording process %d would not work", pid)
	}
	return exit.OfCause(what, *r.Cause, nil)
}

// doctored returns the command line that the remedies repeat: record in place of doctor.
func doctored(args []string, pid int) []string {
	if pid == 0 {
		return append(args[:1:1], "record", "--pid", "PID")
	}
	return append(args[:1:1], "record", "--pid", fmt.Sprint(pid))
}
