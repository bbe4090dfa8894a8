package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/recording"
	"goprof/profile"
)

// inputFlags choose the part of a recording that is read. All commands that read recordings have them.
type inputFlags struct {
	event, weight         string
	from, to              time.Duration
	thread, excludeThread string
	include, exclude      string
	states                []string
	threads               bool
	all                   bool // read all parts, unless the user names one
}

const inputsHelp = `FILE is a collapsed file, a pprof profile or a JFR file, ours or another tool's; its
content tells which. "-" is standard input.`

func (f *inputFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.BoolVarP(&f.threads, "threads", "t", false, "stacks under their threads, where FILE has threads")
	groups, weights := strings.Join(recording.EventGroups, ", "), strings.Join(profile.WeightNames(), ", ")
	fs.StringVar(&f.event, "event", "", "read these `events` of a JFR file: "+groups+", or names")
	fs.StringVar(&f.weight, "weight", "", "count `what`: "+weights+" (default: as FILE says)")
	fs.Var(asTime(&f.from), "from", "leave out what was earlier than this `time` after the recording's start: 10s")
	fs.Var(asTime(&f.to), "to", "leave out what was later than this `time` after the recording's start")
	fs.StringVar(&f.thread, "thread", "", "only threads that `regex` finds in \"name tid=N\"")
	fs.StringVar(&f.excludeThread, "exclude-thread", "", "no threads that `regex` finds in \"name tid=N\"")
	fs.StringVar(&f.include, "include", "", "only stacks with a frame in which `regex` finds something")
	fs.StringVar(&f.exclude, "exclude", "", "no stacks with a frame in which `regex` finds something")
	fs.StringSliceVar(&f.states, "state", nil, "only threads in these `states`: blocked,parked")
	for flag, words := range map[string][]string{
		"event": recording.EventGroups, "weight": profile.WeightNames(), "state": profile.StateNames(),
	} {
		completeFrom(cmd, flag, words)
	}
}

// completeFrom lets shells complete a flag's value from a list of words.
func completeFrom(cmd *cobra.Command, flag string, words []string) {
	cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// filter checks the flags, and makes a filter from them.
func (f *inputFlags) filter(cmd *cobra.Command) (filter recording.Filter, err error) {
	if f.to > 0 && f.to <= f.from {
		return filter, usageError(cmd, "--to is not later than --from", without("to"))
	}
	filter.From, filter.To = f.from, f.to
	for _, r := range []struct {
		flag, text string
		to         **regexp.Regexp
	}{
		{"thread", f.thread, &filter.Thread}, {"exclude-thread", f.excludeThread, &filter.ExcludeThread},
		{"include", f.include, &filter.Include}, {"exclude", f.exclude, &filter.Exclude},
	} {
		if r.text == "" {
			continue
		}
		if *r.to, err = regexp.Compile(r.text); err != nil {
			return filter, usageError(cmd, fmt.Sprintf("--%s: %v", r.flag, err), without(r.flag))
		}
	}
	for _, name := range f.states {
		s, err := profile.ParseState(name)
		if err != nil {
			return filter, usageError(cmd, "--state: "+err.Error(), with("state", "blocked"))
		}
		filter.States = append(filter.States, s)
	}
	return filter, nil
}

// openInput is a recording that was opened for a command, with its filters.
type openInput struct {
	name  string
	file  *recording.File
	src   recording.Source // file, or the wanted part of it
	part  *recording.Filtered
	asked inputFlags
	// redacted says that src contains no names that must be hidden.
	redacted bool
}

// open opens the named recording, and shows notes about it.
func (f *inputFlags) open(cmd *cobra.Command, name string) (*openInput, error) {
	filter, err := f.filter(cmd)
	if err != nil {
		return nil, err
	}
	o := recording.Options{Event: f.event, All: f.all && f.event == "" && f.weight == "", Regular: serving}
	if f.weight != "" {
		w, err := profile.ParseWeight(f.weight)
		if err != nil {
			return nil, usageError(cmd, "--weight: "+err.Error(), without("weight"))
		}
		o.Weight = &w
	}
	file, err := recording.Open(name, o)
	if err != nil {
		return nil, cannotOpen(cmd, name, err)
	}
	in := &openInput{name: name, file: file, src: file, asked: *f}
	if f.event != "" && file.Info().Format == recording.Collapsed {
		err = &recording.Lacks{Problem: "--event needs events, and a collapsed file has none"}
	}
	if filter.Any() && err == nil {
		in.part, err = filter.Of(file)
		in.src = in.part
	}
	if err != nil {
		file.Close()
		return nil, exit.CannotRead(name, err)
	}
	return in, nil
}

func (in *openInput) Close() { in.file.Close() }

// notes shows notes about a file that could be read.
func (in *openInput) notes(cmd *cobra.Command) {
	notes := in.file.Info().Notes
	if in.redacted {
		notes = in.src.Info().Notes
	}
	for _, note := range notes {
		fmt.Fprintf(cmd.ErrOrStderr(), "goprof: %s\n", output.Printable(note))
	}
}

// leftOut reports how much the filters left out, and which parts were not read. Call it after the samples were read.
func (in *openInput) leftOut(cmd *cobra.Command) {
	in.partsLeftOut(cmd)
	if in.part == nil {
		return
	}
	if text := in.part.LeftOut(); text != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), text)
	}
}

// mostLeftOut limits how many unread parts are named.
const mostLeftOut = 8

// partsLeftOut names the parts of the recording that were not read, and the command that reads them. If the user has
// named an event, it reports nothing.
func (in *openInput) partsLeftOut(cmd *cobra.Command) {
	info := in.file.Info()
	left := info.LeftOut()
	if in.asked.event != "" || len(left) == 0 {
		return
	}
	var list []string
	for i, p := range left {
		if i == mostLeftOut {
			list = append(list, fmt.Sprintf("%d more", len(left)-i))
			break
		}
		what := output.Amount(profile.Samples, p.Samples)
		if p.Weights == nil {
			what = fmt.Sprintf("events: %d", p.Samples)
		}
		list = append(list, fmt.Sprintf("%s (%s)", p.Name, what))
	}
	again := append(append(strings.Fields(cmd.CommandPath()), cmd.Flags().Args()...), "--event", left[0].Name)
	if cmd.Name() == "convert" || cmd.Name() == "redact" {
		again = []string{cmd.Root().Name(), "convert", in.name, "--event", left[0].Name, "-o", "OUT"}
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "left out   %s: %s\n", output.Printable(strings.Join(list, ", ")),
		exit.CommandLine(again))
}

// amount returns the number of samples as text. If the file does not have it, the text says "stacks".
func (in *openInput) amount(n int64) string {
	info := in.file.Info()
	if info.All {
		var names []string
		for _, p := range info.Parts {
			names = append(names, p.Name)
		}
		return fmt.Sprintf("%s in %d parts (%s)", output.Amount(profile.Samples, n), len(names), strings.Join(names, ", "))
	}
	if info.Counts() {
		return output.Amount(profile.Samples, n)
	}
	if n == 1 {
		return "1 stack"
	}
	return fmt.Sprintf("%d stacks", n)
}

// sumOptions returns the options from the command line. Collapsed files contain threads as frames.
func (in *openInput) sumOptions() recording.SumOptions {
	i := in.file.Info()
	return recording.SumOptions{Threads: in.asked.threads || i.Format == recording.Collapsed && i.Threads}
}

func (in *openInput) tree(o recording.SumOptions) (*output.Tree, error) {
	tree, err := recording.TreeOf(in.src, o)
	if err != nil {
		return nil, exit.CannotRead(in.name, err)
	}
	return tree, nil
}

func cannotOpen(cmd *cobra.Command, name string, err error) error {
	e := exit.CannotRead(name, err)
	if near := nearFile(name); errors.Is(err, fs.ErrNotExist) && near != "" {
		e.Remedy = cmd.CommandPath() + " " + exit.CommandLine([]string{near})
	}
	return e
}

// nearFile returns the name of an existing file that is similar to a missing one.
func nearFile(missing string) string {
	found, err := filepath.Glob(filepath.Join(filepath.Dir(missing), "*.collapsed"))
	if err != nil || len(found) == 0 {
		return ""
	}
	return found[len(found)-1]
}
