package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"goprof/annotate"
	"goprof/annotate/machine"
	"goprof/cmd/goprof/caption"
	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/outfile"
	"goprof/output/recording"
	"goprof/profile"
	"goprof/vmstructs"
)

const annotateHelp = `annotate shows the lines and bytecodes of one method with their samples: of a recording (a JFR
file), or of a JVM that it samples itself, with --pid.

METHOD is a method's name, or a part of it: Class.method, Class::method. If several methods fit,
they are listed with their samples.

  self    samples in which the method itself ran there, or native code that it calls there
  total   also those in which it had called another Java method there

A file has line numbers and bytecode indexes (bci). A JVM that still runs, or its core file, adds
the bytecodes: with --pid or --core beside FILE. --source adds the text of the lines.

--asm adds the machine code that C1 and C2 made of the method, or into which they inlined it, with
samples at each instruction.
No flag of the JVM is needed. It needs a live JVM that annotate samples itself. A sample counts for
the instruction that was next to run when the thread was interrupted: mostly the one before it took
the time. Each row names the Java code that the instruction belongs to.

Of compiled code, the JVM records lines of calls and safepoints alone. What goprof infers from these
has a "~", and a "?" where even the inlined method is a guess.

Rows without samples that are far from others are left out; --all shows them.`

const annotateExample = `  goprof annotate MyService.handle out.jfr            lines and bytecode indexes with samples
  goprof annotate MyService.handle out.jfr --pid 1234     with the bytecodes, of the JVM that still runs
  goprof annotate MyService.handle out.jfr --core core.1234
  goprof annotate MyService.handle out.jfr --source src/main/java
  goprof annotate MyService.handle --pid 1234 -d 10s        sample it now
  goprof annotate MyService.handle --pid 1234 -d 10s --asm  its machine code, too
  goprof annotate MyService.handle --pid 1234 --asm --json | jq '.code[0].instructions[]|select(.self>0)'`

type annotateFlags struct {
	liveAnnotate
	input  inputFlags
	core   coreFile
	source string
	all    bool
	asJSON bool
	to     string
}

func newAnnotate() *cobra.Command {
	var f annotateFlags
	cmd := &cobra.Command{
		Use:     "annotate METHOD {FILE | --pid PID}",
		Short:   "Show the lines, bytecodes and machine code of a method with their samples",
		Long:    annotateHelp,
		Example: annotateExample,
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	f.liveAnnotate.add(cmd)
	flags.StringVar(&f.source, "source", "", "show the text of the lines, from this `folder` of sources")
	flags.BoolVarP(&f.all, "all", "a", false, "also show rows without samples that are far from others")
	flags.BoolVar(&f.asJSON, "json", false, "write JSON, with all rows")
	flags.StringVarP(&f.to, "output", "o", outfile.Stdout, "write to `file`")
	f.core.addFlags(cmd)
	f.input.add(cmd)
	return cmd
}

type annotation struct {
	*annotate.Collector
	flags  *annotateFlags
	cmd    *cobra.Command
	name   string // METHOD as given
	pid    int    // of the live JVM
	from   string // the source of the samples
	weight profile.Weight
	mode   string
	vm     *vmstructs.VM  // nil without a JVM
	codes  *machine.Codes // nil without machine code
	// ask runs a function that reads the JVM. If the JVM does not answer, ask returns an error, and the function's
	// result is not used.
	ask func(read func()) error
}

func (f *annotateFlags) run(cmd *cobra.Command, args []string) error {
	if err := f.check(cmd, args); err != nil {
		return err
	}
	a := &annotation{flags: f, cmd: cmd, name: args[0], Collector: annotate.New(args[0]),
		ask: func(read func()) error { read(); return nil }}
	if !f.isLive(cmd) {
		readFilesOnly(cmd, args[1:])
	}
	if len(args) == 2 {
		if err := a.read(args[1]); err != nil {
			return err
		}
	}
	if f.isLive(cmd) {
		end, err := a.attach()
		if err != nil {
			return err
		}
		defer end()
	}
	page, err := a.choose()
	if err != nil {
		return err
	}
	if f.core.file != "" {
		core, err := f.core.open(cmd)
		if err != nil {
			return err
		}
		defer core.Close()
		a.vm = core.VM
	}
	return a.write(page)
}

func (f *annotateFlags) check(cmd *cobra.Command, args []string) error {
	given := cmd.Flags().Changed
	live := f.isLive(cmd)
	switch {
	case len(args) == 0 || strings.Trim(args[0], ".:#") == "":
		return usageError(cmd, "which method? METHOD is missing")
	case len(args) > 2:
		return usageError(cmd, fmt.Sprintf("one argument too many: %q", args[2]), withoutWord(args[2]))
	case given("threads"):
		return usageError(cmd, "--threads: a page of one method has no threads; --thread chooses some", without("threads"))
	case len(args) == 1 && given("core"):
		return usageError(cmd, "a core file has no samples: FILE is missing")
	case len(args) == 1 && !live:
		return usageError(cmd, "samples of what? FILE is missing, or --pid")
	case live && given("core"):
		return usageError(cmd, "--pid and --core exclude each other", without("core"))
	case len(args) == 2:
		for _, flag := range []string{"asm", "duration", "rate", "engine"} {
			if cmd.Flags().Lookup(flag) != nil && given(flag) {
				return usageError(cmd, fmt.Sprintf("--%s is for a JVM that annotate samples itself, and %s has its samples", flag,
					args[1]), withoutWord(args[1]))
			}
		}
	default:
		if flags := givenOf(cmd, []string{"threads", "event", "weight", "from", "to", "thread", "exclude-thread", "include",
			"exclude", "state"}); len(flags) > 0 {
			return usageError(cmd, fmt.Sprintf("--%s chooses samples of a FILE", flags[0]), without(flags...))
		}
	}
	return f.core.check(cmd, nil)
}

// read gathers the samples of a recording.
func (a *annotation) read(name string) error {
	if err := exit.NotItself(name, a.flags.to); err != nil {
		return err
	}
	in, err := a.flags.input.open(a.cmd, name)
	if err != nil {
		return err
	}
	defer in.Close()
	in.notes(a.cmd)
	info := in.src.Info()
	if info.Format == recording.Collapsed {
		return &exit.Error{Code: exit.BadInput, What: name + " has no lines and no bytecode indexes",
			Why:    "collapsed stacks are names alone",
			Remedy: "goprof record --pid PID -d 30s -o out.jfr, and goprof annotate " + a.name + " out.jfr"}
	}
	a.from, a.weight, a.mode = output.Printable(name), info.Meta.Weight, caption.Mode(&info.Meta)
	a.LinesAlone = info.Format == recording.Pprof
	src, err := recording.Settled(in.src)
	if err == nil {
		err = src.Each(func(s *profile.Sample) error {
			a.Waiting = s.Wall && !s.NoState && s.State != profile.Running
			a.Add(s.Stack, recording.Weigh(s, a.weight))
			return nil
		})
	}
	if err != nil {
		return exit.CannotRead(name, err)
	}
	in.leftOut(a.cmd)
	return nil
}

// mostCandidates limits how many methods are listed.
const mostCandidates = 10

// choose returns the page of the method that the user has named. If several methods with samples fit, it lists them and
// returns an error.
func (a *annotation) choose() (*annotate.Page, error) {
	list := a.Candidates()
	if len(list) == 0 {
		e := &exit.Error{Code: exit.NoSamples, Remedy: fmt.Sprintf("goprof top --once %d", a.pid),
			What: fmt.Sprintf("no sample of %s has a Java method with %q in its name", a.from, output.Printable(a.name))}
		if args := a.cmd.Flags().Args(); len(args) > 1 {
			e.Remedy = exit.CommandLine([]string{"goprof", "report", "--by", "line", args[1]})
		}
		return nil, e
	}
	if len(list) > 1 {
		talk := a.cmd.ErrOrStderr()
		fmt.Fprintf(talk, "%10s %7s %10s %7s  %s\n", "self", "", "total", "", "method")
		for _, c := range list[:min(len(list), mostCandidates)] {
			fmt.Fprintf(talk, "%10s %7s %10s %7s  %s\ntry: %s\n", output.Figure(a.weight, c.Self), output.Percent(c.Self, a.All),
				output.Figure(a.weight, c.Total), output.Percent(c.Total, a.All), output.CleanName(c.Name), a.again(c.Name))
		}
		return nil, &exit.Error{Code: exit.General,
			What: fmt.Sprintf("%d methods with samples have %q in their names", len(list), output.Printable(a.name))}
	}
	page := a.Page(list[0].Name)
	page.Weight, page.Mode = a.weight, a.mode
	if a.Unnamed > 0 {
		page.Notes = append(page.Notes, fmt.Sprintf("in %s of all, which inlined method was running is a guess: these count "+
			"for the compiled method", output.Percent(a.Unnamed, a.All)))
	}
	return page, nil
}

// again returns the command line with another method.
func (a *annotation) again(method string) string {
	args := slices.Clone(os.Args)
	if i := slices.Index(args, a.name); i > 0 {
		args[i] = method
	}
	return output.Printable(exit.CommandLine(args))
}

// write adds bytecodes, machine code and source to the page, and writes it.
func (a *annotation) write(page *annotate.Page) error {
	talk := a.cmd.ErrOrStderr()
	if a.vm != nil {
		var noBytecodes error
		if err := a.ask(func() {
			noBytecodes = machine.AddBytecodes(a.vm, page)
			if a.codes != nil {
				a.codes.AddTo(page)
			}
		}); err != nil {
			return err
		}
		if noBytecodes != nil {
			fmt.Fprintf(talk, "goprof: the bytecodes are not shown: %s\n", output.Printable(noBytecodes.Error()))
		}
	}
	if a.codes != nil && len(page.Code) == 0 {
		fmt.Fprintln(talk, "goprof: no sample is in machine code: the method was interpreted")
	}
	if a.flags.source != "" {
		if err := page.ReadSource(a.flags.source); err != nil {
			return &exit.Error{Code: exit.BadInput, What: "cannot show the source of " + output.CleanName(page.Method),
				Why: whyOf(err), Remedy: exit.CommandLine(without("source")(a.cmd, os.Args)), Err: errors.Unwrap(err)}
		}
	}
	return writeResult(a.cmd, a.flags.to, func(to io.Writer) error {
		if a.flags.asJSON {
			return page.JSON(to)
		}
		return page.Text(to, a.flags.all)
	})
}
