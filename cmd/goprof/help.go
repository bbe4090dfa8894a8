package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A command with many flags has two helps. --help shows what most users need. --help-all shows everything, like the
// manual page.

// brief is the short help of a command. The texts and flags of the command itself form the whole help.
type brief struct {
	about    string
	examples string
	flags    []string
}

// briefs are the short helps by command.
var briefs = map[string]brief{
	"record": {recordBrief, recordBriefExample, []string{"pid", "wait", "duration", "output", "open", "rate", "threads",
		"mode", "event", "thread", "group-threads", "engine"}},
	"dump": {dumpBrief, dumpBriefExample, []string{"pid", "output", "format", "group", "count", "every", "virtual",
		"nonblocking", "core"}},
	"agent": {agentBrief, agentBriefExample, []string{"config", "check", "files", "files-format", "otlp", "rate", "every",
		"max-cpu", "match", "event", "listen"}},
	"diff": {diffBrief, diffBriefExample, []string{"output", "before", "after", "by", "top", "min-change", "thread",
		"exit-code"}},
}

// helpAll is the flag --help-all, which all commands have. Like --help it ends the parsing of the command line.
type helpAll struct{ asked bool }

func (h *helpAll) String() string { return "" }
func (h *helpAll) Type() string   { return "bool" }
func (h *helpAll) Set(string) error {
	h.asked = true
	return pflag.ErrHelp
}

// addHelp adds help to all commands. h is evaluated when help is shown.
func addHelp(root *cobra.Command) {
	all := &helpAll{}
	flag := root.PersistentFlags().VarPF(all, "help-all", "", "show the whole help")
	flag.NoOptDefVal, flag.Hidden = "true", true
	whole := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		b, is := briefs[cmd.Name()]
		if !is || all.asked || cmd.Parent() != root {
			whole(cmd, args)
			return
		}
		io.WriteString(cmd.OutOrStdout(), b.text(cmd))
	})
}

// briefWidth is the width of the short help.
const briefWidth = 100

func (b *brief) text(cmd *cobra.Command) string {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.SortFlags = false
	for _, name := range b.flags {
		if f := cmd.Flags().Lookup(name); f != nil { // some flags exist on Linux only
			flags.AddFlag(f)
		}
	}
	return fmt.Sprintf("%s\n\nUsage:\n  %s\n\nExamples:\n%s\n\nFlags that are used most:\n%s\n"+
		"All flags, and what each means: %s --help-all\n", b.about, cmd.UseLine(), b.examples,
		strings.TrimRight(flags.FlagUsagesWrapped(briefWidth), "\n")+"\n", cmd.CommandPath())
}
