package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/caption"
	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/outfile"
	"goprof/profile"
)

type reportFlags struct {
	by     string
	where  []string
	sort   string
	top    int
	asJSON bool
	to     string
	shape  output.Shape
	input  inputFlags
}

var reportKeys = append(slices.Clone(output.ReportKeys), output.ByHottest, output.ByWaker, output.ByChain,
	"file", "peer")

func newReport() *cobra.Command {
	var f reportFlags
	cmd := &cobra.Command{
		Use:   "report FILE",
		Short: "Show what a recording's samples were spent in, as a table",
		Long: `report writes a table to standard output: what a recording's samples were spent in.

"self" counts the samples that have a method as their leaf. "total" counts those that have
it anywhere on their stack. A sample counts once, however often the method recurs in it.
With --sort total the frames by which a thread begins are one.

A report of mode wall or off-cpu begins with what the threads did, unless --by is given.
The time of a waiting thread counts for the topmost Java method that does more than wait:
LinkedBlockingQueue.take, not Unsafe.park. With --by class, package or line, native
code counts for the Java frame that calls it. Collapsed files have no lines. --by hottest has the names of record's account.

--by file and --by peer show what record --event io has counted: all calls, not only those that became samples.

--event NAME --by FIELD counts the events of the JDK, of async-profiler or of an application by one
of their fields. For a field that is not there, report lists the fields that are. If a field has the
name of a key, the field counts, except for events that are samples. Flags that choose samples are
refused: --where chooses events.

` + inputsHelp,
		Example: `  goprof report out.collapsed
  goprof report --sort total out.collapsed       which entry points, with all that they call
  goprof report --by package --top 10 out.collapsed
  goprof report --by line out.jfr                which lines of the source
  goprof report --by thread out.collapsed        after goprof record --threads
  goprof report --by thread --group-threads out.collapsed
  goprof report --by state out.collapsed         after goprof record --mode wall or off-cpu
  goprof report out.jfr --from 10s --to 25s      what ran in these 15 seconds
  goprof report --by waker out.collapsed         after goprof record --event off-cpu --wakers
  goprof report --by chain out.collapsed         after goprof record --event off-cpu --chain
  goprof report --by hottest out.jfr             methods with states, system calls, collector, compilers
  goprof report io.jfr --by peer                 after goprof record --event io; or --by file
  goprof report jdk.jfr --event alloc --by class what the JDK's recorder saw allocated
  goprof report x.jfr --event jdk.GarbageCollection --by cause       any event, by any of its fields
  goprof report x.jfr --event my.Order --by country --where state=failed
  goprof report --json out.collapsed | jq '.rows[0]'`,
		Args: exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.by, "by", "method", "sum up by `what`: "+strings.Join(reportKeys, ", "))
	flags.StringArrayVar(&f.where, "where", nil, "with --event and a field: only events in which `FIELD=regex` fits")
	flags.StringVar(&f.sort, "sort", bySelf, "sort rows by `figure`: self or total")
	flags.IntVar(&f.top, "top", 30, "show the first `n` rows, 0 for all")
	addShape(flags, &f.shape)
	flags.BoolVar(&f.asJSON, "json", false, "write JSON")
	flags.StringVarP(&f.to, "output", "o", outfile.Stdout, "write to `file`")
	f.input.add(cmd)
	completeFrom(cmd, "sort", []string{bySelf, byTotal})
	completeFrom(cmd, "by", reportKeys)
	return cmd
}

func (f *reportFlags) run(cmd *cobra.Command, name string) error {
	if f.top < 0 {
		return usageError(cmd, "--top is how many rows to show, 0 for all", without("top"))
	}
	if f.sort != bySelf && f.sort != byTotal {
		return usageError(cmd, fmt.Sprintf("--sort is self or total, not %q", f.sort), with("sort", byTotal))
	}
	if known := slices.Contains(reportKeys, f.by); f.input.event != "" &&
		(!known || len(f.where) > 0 || cmd.Flags().Changed("by") && f.hasField(name)) {
		return f.table(cmd, name)
	} else if len(f.where) > 0 {
		return usageError(cmd, "--where is for one --event by a field of it", without("where"))
	} else if !known {
		return usageError(cmd, fmt.Sprintf("--by is one of %s, not %q", strings.Join(reportKeys, ", "), f.by),
			without("by"))
	} else if output.IOKeys[f.by] != nil {
		return f.files(cmd, name)
	}
	if err := exit.NotItself(name, f.to); err != nil {
		return err
	}
	in, err := f.input.open(cmd, name)
	if err != nil {
		return err
	}
	defer in.Close()
	in.notes(cmd) // a summary shows the unit
	sum := in.sumOptions()
	sum.Threads = sum.Threads || (f.by == output.ByThread || f.shape.GroupThreads) && in.file.Info().Threads
	sum.States = true // a thread's state decides for which frame its time counts
	sum.Lines = f.by == output.ByLine
	tree, err := in.tree(sum)
	if err != nil {
		return err
	}
	in.leftOut(cmd)
	meta := in.src.Info().Meta
	f.shape.HideEntries = f.sort == byTotal // entries would fill the first rows
	tree = tree.Shaped(f.shape)
	r, err := f.of(tree, &meta)
	if err == nil {
		if f.sort == byTotal {
			r.SortByTotal()
		}
		r.Keep(f.top)
	}
	if err == nil && !cmd.Flags().Changed("by") {
		err = r.WithStates(tree)
	}
	if err != nil {
		return err
	}
	r.Mode = caption.Mode(&meta)
	if cure := r.Lacks(); cure != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "goprof: the recording does not say the %s of its samples\ntry: %s\n", f.by, cure)
	}
	return writeResult(cmd, f.to, inForm(f.asJSON, r.JSON, r.Text))
}

// The values of --sort.
const bySelf, byTotal = "self", "total"

// of returns the report of a tree, with all rows.
func (f *reportFlags) of(tree *output.Tree, meta *profile.Meta) (*output.Report, error) {
	switch f.by {
	case output.ByHottest:
		return output.NewHottest(tree, meta), nil
	case output.ByWaker, output.ByChain:
		return output.NewWakers(tree, f.by), nil
	}
	return output.NewReport(tree, f.by)
}
