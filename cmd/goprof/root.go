package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goprof/cmd/goprof/exit"
)

// portable lists the commands that run on any operating system. platform, in commands_linux.go and commands_other.go,
// lists those that look at processes.
func portable() []func() *cobra.Command {
	return []func() *cobra.Command{
		newFlame,
		newReport,
		newAnnotate,
		newHeat,
		newConvert,
		newShip,
		newDiff,
		newRedact,
		newServe,
		newMCP,
		newVersion,
		newLicenses,
		newMan,
		newOpener,
		newWait,
	}
}

// fileReaders are the commands that never look at a process. dump, heap, locks and triage look at one only without a
// file.
var fileReaders = []string{"flame", "report", "heat", "convert", "ship", "diff", "redact"}

const rootHelp = `goprof shows where a running Java program spends its time, down to the last native
frame. It looks at the JVM from outside: nothing is loaded into it, nothing in it is
changed, and no flag of it is needed.`

const rootExample = `  goprof list                              the JVMs of this host
  goprof record --pid 1234 -d 30s          sample for 30 seconds into out.collapsed
  goprof flame out.collapsed               draw it: out.html
  goprof report out.collapsed              the methods that cost most
  goprof annotate Class.method out.jfr     the lines of one that cost most
  goprof heat out.jfr                      draw it over time: out.heat.html
  goprof diff before.jfr after.jfr         what changed, and what is noise
  goprof serve .                           all recordings of a folder, in a browser
  goprof dump --pid 1234                   what every thread does at this moment
  goprof triage 1234                       what is wrong with it, the likeliest first
  goprof locks --pid 1234                  deadlocks, and who waits for whose lock
  goprof snap 1234                         all of that in one file, before a restart
  goprof heap 1234                         what fills its heap, and what grows
  goprof memory 1234                       where its resident memory is, and what grows
  goprof top 1234                          its threads and methods, all the time
  goprof slow 1234                         its slowest requests, and what each waited for
  goprof agent --files /var/lib/goprof     all JVMs of this host, all the time
  goprof doctor --pid 1234                 what would work, and what mends the rest
  goprof man /usr/local/share/man/man1     the manual pages: man goprof-record`

func newRoot() *cobra.Command {
	var showVersion bool
	root := &cobra.Command{
		Use:           "goprof",
		Short:         "Profile a running JVM from outside",
		Long:          rootHelp,
		Example:       rootExample,
		SilenceUsage:  true,
		SilenceErrors: true, // exit.Tell shows them
		Args:          noCommand,
		PersistentPreRun: func(cmd *cobra.Command, args []string) {
			startOpener(cmd)
			beGoodNeighbour(cmd)
			if slices.Contains(fileReaders, cmd.Name()) {
				readFilesOnly(cmd, args)
			}
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if showVersion {
				fmt.Fprintln(cmd.OutOrStdout(), versionLine())
				return nil
			}
			return cmd.Help()
		},
	}
	// cobra's own --version uses a template that needs reflection, which keeps the linker from removing unused code.
	root.Flags().BoolVarP(&showVersion, "version", "v", false, "show which goprof this is")
	root.SetFlagErrorFunc(flagError)
	root.SuggestionsMinimumDistance = 2
	cobra.EnableCommandSorting = false // the order of use: list, record, ...
	for _, commands := range [][]func() *cobra.Command{platform, portable()} {
		for _, make := range commands {
			root.AddCommand(make())
		}
	}
	root.AddCommand(exitCodesTopic())
	root.InitDefaultHelpCmd()
	replaceHelp(root)
	addHelp(root)
	return root
}

// replaceHelp makes help report an unknown topic. Cobra's own help shows goprof's help in that case.
func replaceHelp(root *cobra.Command) {
	help, _, err := root.Find([]string{"help"})
	if err != nil || help == root {
		return
	}
	help.Run = nil
	help.RunE = func(_ *cobra.Command, args []string) error {
		about, rest, err := root.Find(args)
		if err != nil || about == nil || len(rest) > 0 {
			return noCommand(root, args[len(args)-max(1, len(rest)):])
		}
		about.InitDefaultHelpFlag()
		return about.Help()
	}
}

// flagProblem returns what is wrong with a flag, without names of Go functions.
func flagProblem(err error) string {
	var number *strconv.NumError
	var value *pflag.InvalidValueError
	if errors.As(err, &value) && errors.As(err, &number) {
		why := "it is no number"
		if errors.Is(number, strconv.ErrRange) {
			why = "it is too large"
		}
		return fmt.Sprintf("invalid argument %q for --%s: %s", value.GetValue(), value.GetFlag().Name, why)
	}
	return err.Error()
}

// noCommand returns the error for a word that is not a command.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := usageError(cmd, fmt.Sprintf("there is no command %q", args[0]))
	if verb := asprofVerbs[args[0]]; verb != "" {
		err.Remedy = verb
	} else if pid, e := strconv.Atoi(args[0]); e == nil && pid > 0 {
		err.Remedy = fmt.Sprintf("goprof record %d, or goprof dump %[1]d", pid)
	} else if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		err.Remedy = cmd.Name() + " " + strings.Join(near, ", ")
	}
	return err
}

// atMostOne accepts one argument or none.
func atMostOne(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usageError(cmd, fmt.Sprintf("one argument too many: %q", args[1]), withoutWord(args[1]))
	}
	return nil
}

// usageError returns an error about the command line. The remedy is the command line with the fixes, or else the
// command's first example.
func usageError(cmd *cobra.Command, why string, fixes ...fix) *exit.Error {
	e := &exit.Error{Code: exit.General, What: why, Remedy: cmp.Or(firstExample(cmd), cmd.CommandPath()+" --help")}
	if len(fixes) > 0 {
		args := os.Args
		for _, f := range fixes {
			args = f(cmd, args)
		}
		e.Remedy = exit.CommandLine(args)
	}
	return e
}

// exactly requires as many arguments as names, and names the missing ones.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usageError(cmd, "missing "+strings.Join(names[len(args):], ", "))
		case len(args) > len(names):
			return usageError(cmd, fmt.Sprintf("one argument too many: %q", args[len(names)]),
				withoutWord(args[len(names)]))
		}
		return nil
	}
}

// exitCodesTopic is shown by "goprof help exit-codes".
func exitCodesTopic() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "What goprof's exit codes mean, and what mends them",
		Long: exit.Help()}
}
