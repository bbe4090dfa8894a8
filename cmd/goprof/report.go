package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"goprof/output"
)

func newReport() *cobra.Command {
	var (
		by     string
		top    int
		asJSON bool
		to     string
		shape  output.Shape
		input  inputFlags
	)
	cmd := &cobra.Command{
		Use:   "report FILE",
		Short: "Show what a recording's samples were spent in, as a table",
		Long: `report writes a table to standard output: what a recording's samples were spent in.

"self" counts the samples that have a method as their leaf. "total" counts those that have
it anywhere on their stack. A sample counts once, however often the method recurs in it.

A report of mode wall or off-cpu begins with what the threads did, unless --by is given.
With --by package, a sample counts for the package of its topmost Java frame. The native
code that this frame calls is included.

` + inputsHelp,
		Example: `  goprof report out.collapsed
  goprof report --by package --top 10 out.collapsed
  goprof report --by thread out.collapsed        after goprof record --threads
  goprof report --by thread --group-threads out.collapsed
  goprof report --by state out.collapsed         after goprof record --mode wall or off-cpu
  goprof report out.jfr --from 10s --to 25s      what ran in these 15 seconds
  goprof report jdk.jfr --event alloc --by class what the JDK's recorder saw allocated
  goprof report --json out.collapsed | jq '.rows[0]'`,
		Args: exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if top < 0 {
				return usageError(cmd, "--top is how many rows to show, 0 for all")
			}
			if !slices.Contains(output.ReportKeys, by) {
				return usageError(cmd, fmt.Sprintf("--by is one of %s, not %q", strings.Join(output.ReportKeys, ", "), by))
			}
			if err := notItself(args[0], to); err != nil {
				return err
			}
			in, err := input.open(cmd, args[0])
			if err != nil {
				return err
			}
			defer in.Close()
			in.notes(cmd) // a summary tells what is counted
			sum := in.sumOptions()
			sum.Threads = sum.Threads || (by == output.ByThread || shape.GroupThreads) && in.file.Info().Threads
			sum.States = by == output.ByState || !cmd.Flags().Changed("by")
			tree, err := in.tree(sum)
			if err != nil {
				return err
			}
			in.leftOut(cmd)
			meta := in.src.Info().Meta
			tree = tree.Shaped(shape)
			r, err := output.NewReport(tree, by, top)
			if err == nil && !cmd.Flags().Changed("by") {
				err = r.WithStates(tree)
			}
			if err != nil {
				return err
			}
			r.Mode = otherMode(&meta)
			write := r.Text
			if asJSON {
				write = r.JSON
			}
			return writeResult(cmd, to, write)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&by, "by", "method", "sum up by `what`: "+strings.Join(output.ReportKeys, ", "))
	flags.IntVar(&top, "top", 30, "show the first `n` rows, 0 for all")
	addShape(flags, &shape)
	flags.BoolVar(&asJSON, "json", false, "write JSON")
	flags.StringVarP(&to, "output", "o", output.Stdout, "write to `file`")
	input.add(cmd)
	cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(output.ReportKeys, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// writeResult writes to standard output or a file.
func writeResult(cmd *cobra.Command, name string, write func(io.Writer) error) error {
	if name == output.Stdout && cmd.OutOrStdout() != os.Stdout {
		return write(cmd.OutOrStdout())
	}
	file, err := output.Reserve(name)
	if err == nil {
		_, err = file.Write(write)
	}
	if err != nil {
		return outputFailed(err)
	}
	return nil
}
