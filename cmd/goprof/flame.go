package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/caption"
	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/flame"
	"goprof/output/outfile"
	"goprof/output/recording"
)

type flameFlags struct {
	output, title, summary string
	minwidth               float64
	svg                    bool
	shape                  output.Shape
	drawing                drawing
	in                     inputFlags
}

func newFlame() *cobra.Command {
	var f flameFlags
	cmd := &cobra.Command{
		Use:   "flame FILE",
		Short: "Draw a recording as a flame graph, one page that needs no network",
		Long: `flame draws a recording as a page beside it. The page holds all it needs: it can be mailed,
and opened offline.

In the page: / searches by regular expression, a click zooms, r shows the callers of
each leaf, i puts the root on top, ? lists all keys. Page.html#q=text opens with a search.

` + inputsHelp + `

The page also shows the account of the recording. A JFR file holds it. For out.collapsed it is
read from out.summary.json in the same folder, if that file belongs to the recording.

flame replaces an older page of the same recording, and what -o names. It keeps any other file of
that name: the page is out.1.html then.`,
		Example: `  goprof flame out.collapsed
  goprof flame out.collapsed -o incident-4711.html --title "checkout, slow"
  goprof flame out.collapsed --open              and show it in the browser
  goprof flame out.collapsed --svg -o ticket.svg
  goprof flame out.jfr --from 10s --to 25s --thread http
  goprof flame async.jfr --event alloc           what allocates, in bytes
  goprof record --pid 1234 -d 10s -o - | goprof flame - -o now.html`,
		Args: exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return drawFlame(cmd, args[0], &f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&f.output, "output", "o", "", "write to `file`; - is standard output (default: beside FILE, .html)")
	flags.StringVar(&f.title, "title", "", "the page's `title` (default: the program's name)")
	flags.Float64Var(&f.minwidth, "minwidth", 0, "leave out frames with less than this share of all samples, in `percent`")
	flags.BoolVar(&f.svg, "svg", false, "a picture without scripts instead of a page")
	addOpen(flags)
	addShape(flags, &f.shape)
	f.drawing.add(flags)
	flags.StringVar(&f.summary, "summary", "", "the summary `file` of a collapsed file (default: beside FILE)")
	f.in.add(cmd)
	return cmd
}

func drawFlame(cmd *cobra.Command, input string, f *flameFlags) error {
	if !(f.minwidth >= 0 && f.minwidth < 100) {
		return usageError(cmd, "--minwidth is a share in percent, from 0 to less than 100", without("minwidth"))
	}
	end, draw := ".html", flame.Page
	if f.svg {
		end, draw = ".svg", flame.SVG
	}
	p := drawn{f.output, "flame" + end, strings.TrimSuffix(input, filepath.Ext(input)) + end}
	return p.draw(cmd, &f.in, input, func(in *openInput, file *outfile.File) (name, about string, err error) {
		if err := in.describe(cmd, f.summary); err != nil {
			return "", "", err
		}
		sum := in.sumOptions()
		sum.Threads = sum.Threads || f.shape.GroupThreads && in.file.Info().Threads
		tree, err := in.tree(sum)
		if err != nil {
			return "", "", err
		}
		info := in.src.Info()
		tree, whole := tree.Drawn(f.drawing.of(f.shape))
		o := caption.Drawing(version(), input, f.title, tree, &info)
		o.MinShare, o.Whole = f.minwidth/100, whole
		name, err = file.Write(func(w io.Writer) error { return draw(w, tree, o) })
		return name, fmt.Sprintf("flame graph: %s (%s, %s, %s)", output.Printable(name),
			output.Amount(tree.Weight, tree.Total), output.Count(tree.Stacks, "stack"),
			output.Count(len(tree.Nodes)-1, "frame")), exit.CannotWrite(err)
	})
}

// describe adds the named summary to a collapsed file. Without a name it reports faults of the summary beside the file.
func (in *openInput) describe(cmd *cobra.Command, named string) error {
	if named == "" {
		in.notes(cmd)
		return nil
	}
	tree := in.file.Tree()
	if tree == nil {
		return usageError(cmd, "--summary is for collapsed files: what is known of others is in them", without("summary"))
	}
	file, err := os.Open(named)
	if err != nil {
		return exit.CannotRead(named, err)
	}
	defer file.Close()
	s, err := recording.ReadSummary(file, in.name, tree)
	if err != nil {
		return &exit.Error{Code: exit.BadInput, What: "cannot use " + named, Err: err}
	}
	in.file.Describe(s)
	return nil
}
