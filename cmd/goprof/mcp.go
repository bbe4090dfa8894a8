package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/internal/tools"
	"goprof/cmd/goprof/mcp"
)

const mcpHelp = `mcp is a server of the Model Context Protocol on standard input and output: a program with a language
model (an editor, a chat) starts it, and the model can then look at the JVMs of this host.

Its tools are list, triage, dump, locks, record, report, diff, heap and snap. Each runs the command of that name in
a process of its own, without a shell. They only look: no JVM is changed, and nothing is written but recordings,
into a folder of the server's own.

Names of packages, classes, methods and threads of the program are pseudonyms, the same ones in all
answers. --names shows the real ones. They leave this machine if the model runs elsewhere.

An answer has 300 lines at most. Its last line says what was cut, and how to see it. A call ends after its
time. docs/mcp.md has the lines for the usual clients.`

const mcpExample = `  goprof mcp                            pseudonyms, and a folder that is removed at the end
  goprof mcp --dir ~/recordings         report and diff read the recordings there, too
  goprof mcp --names                    with the program's names
  claude mcp add goprof -- goprof mcp
  codex mcp add goprof -- goprof mcp`

func newMCP() *cobra.Command {
	var dir string
	var names bool
	cmd := &cobra.Command{
		Use:     "mcp",
		Short:   "Let a language model look at the JVMs of this host (Model Context Protocol)",
		Long:    mcpHelp,
		Example: mcpExample,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return serveMCP(cmd, dir, names) },
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&dir, "dir", "",
		"`folder` for recordings, whose files can be read (default: a new one, removed at the end)")
	cmd.Flags().BoolVar(&names, "names", false, "show the program's names")
	return cmd
}

const (
	mcpInstructions = `goprof looks at running JVMs from outside. Begin with list, then triage: it says what is wrong and ` +
		`what to call next. record takes samples into a file, which report and diff read. record and triage take as long ` +
		`as you ask for.`
	mcpPseudonyms = ` Names of the program are pseudonyms: the user starts goprof mcp --names to have them told.`
)

func serveMCP(cmd *cobra.Command, dir string, names bool) error {
	self, err := os.Executable()
	if err != nil {
		return &exit.Error{Code: exit.General, What: "cannot find goprof itself", Err: err}
	}
	m, err := tools.Open(self, dir, names)
	if err != nil {
		return err
	}
	defer m.Close()
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	server := mcp.Server{Name: "goprof", Version: version(), Instructions: mcpInstructions, Tools: m.Tools()}
	if !names {
		server.Instructions += mcpPseudonyms
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "goprof: awaits a client of the Model Context Protocol on standard input")
	return exit.CannotWrite(server.Serve(ctx, cmd.InOrStdin(), cmd.OutOrStdout()))
}
