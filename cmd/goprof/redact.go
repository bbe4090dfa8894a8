package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/format"
	"goprof/output/outfile"
	"goprof/output/recording"
	"goprof/output/redaction"
	"goprof/output/snap"
	"goprof/profile/redact"
)

const redactHelp = `redact writes a file again so that it can be given away. Names of packages, classes, methods,
threads and files become pseudonyms. Names of the JDK, of well-known open-source projects and of the
JVM stay readable. The shape of every name stays, too. Arguments, addresses, e-mails, long numbers
and all unknown text are removed. Numbers, stacks and times stay as they are.

IN is a JFR file (goprof's, the JDK's or async-profiler's), a pprof profile, collapsed stacks, or
JSON of dump, locks, triage, report or a recording's account; or text: a log, or the file that a JVM
writes when it crashes (hs_err). OUT has the same format. If OUT's name
stands for another format, IN is converted. Pages, pictures, Firefox and speedscope files cannot be
read: redact the recording that they were made of.

Of a JFR file only the events that docs/redaction.md lists stay, and of their texts only those that
are known. An application's own events, system properties, the environment, command lines, thread
dumps and messages of exceptions are removed. redact says what it left out.

Equal names have equal pseudonyms in all files that were written with the same --key. So two
recordings of one case can be compared. Without --key, the key is made for this run and thrown away.
--map writes what the pseudonyms stand for. docs/redaction.md describes the file of a policy.

--verify looks for each line of WORDLIST in OUT. Without -o it looks in IN. It searches the bytes,
and the unpacked content. The exit code is 15 if a word is left.`

const redactExample = `  goprof redact app.jfr -o app.redacted.jfr --verify words.txt
  head -c 32 /dev/urandom > case.key
  goprof redact before.jfr -o b.jfr --key case.key --map case.map
  goprof redact after.jfr -o a.jfr --key case.key && goprof diff b.jfr a.jfr
  goprof redact dump.json -o d.json --policy ours.policy
  goprof redact app.log -o case.log                      a log, or hs_err_pid1234.log
  goprof redact app.jfr -o app.html
  goprof redact app.redacted.jfr --verify words.txt      look, and write nothing`

type redactCommand struct {
	redactFlags
	output, format, verify string
	quiet                  bool
}

func newRedact() *cobra.Command {
	var f redactCommand
	cmd := &cobra.Command{
		Use:     "redact IN -o OUT",
		Short:   "Write a recording without the names of its program",
		Long:    redactHelp,
		Example: redactExample,
		Args:    exactly("IN"),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVarP(&f.output, "output", "o", "", "write to `file`; - is standard output")
	fs.StringVarP(&f.format, "format", "f", "", "write this `format`, whatever the file's name is")
	fs.StringVar(&f.policy, "policy", defaultPolicy, "what stays readable: default, or a `file`")
	fs.StringVar(&f.key, "key", "", "`file` with the key of the pseudonyms (default: one for this run alone)")
	fs.StringVar(&f.names, "map", "", "write to `file` what each pseudonym stands for. Keep it")
	fs.StringVar(&f.verify, "verify", "", "look for each line of `WORDLIST` in what was written")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "do not say what was left out")
	completeFrom(cmd, "format", format.Names())
	return cmd
}

func (f *redactCommand) run(cmd *cobra.Command, input string) error {
	words, err := f.wordList()
	if err != nil {
		return err
	}
	switch {
	case f.output == "" && f.verify == "":
		return usageError(cmd, "-o is missing: where to write to, - is standard output",
			with("output", redactedName(input)))
	case f.output == "":
		return f.search(input, words)
	case f.output == outfile.Stdout && f.verify != "":
		return usageError(cmd, "--verify reads what was written, and standard output cannot be read: -o FILE",
			with("output", redactedName(input)))
	}
	if err := exit.NotItself(input, f.output); err != nil {
		return err
	}
	if err := f.prepare(cmd, input, f.output); err != nil {
		return err
	}
	if err := f.write(cmd, input, f.by); err != nil {
		return err
	}
	if err := f.writeMap(); err != nil {
		return err
	}
	if f.verify == "" {
		return nil
	}
	return f.search(f.output, words)
}

// redactedName returns a name for the redacted file. It keeps the ending, which determines the format.
func redactedName(input string) string {
	if input == outfile.Stdout {
		return "redacted" // in the format of the input
	}
	return "redacted-" + filepath.Base(input)
}

// wordList reads the words that must not remain.
func (f *redactCommand) wordList() ([]string, error) {
	if f.verify == "" {
		return nil, nil
	}
	file, err := os.Open(f.verify)
	if err != nil {
		return nil, exit.CannotRead(f.verify, err)
	}
	defer file.Close()
	words, err := redaction.Words(file)
	if err == nil && len(words) == 0 {
		err = errors.New("there is no word in it")
	}
	if err != nil {
		return nil, exit.CannotRead(f.verify, &output.BadFile{Problem: err.Error()})
	}
	return words, nil
}

// search returns an error if a word remains.
func (f *redactCommand) search(name string, words []string) error {
	file, err := os.Open(name)
	if err != nil {
		return exit.CannotRead(name, err)
	}
	defer file.Close()
	left, err := redaction.Search(file, words)
	if len(left) > 0 {
		var list []string
		for _, l := range left[:min(len(left), maxLeft)] {
			list = append(list, fmt.Sprintf("%q %s", l.Word, l.Where))
		}
		if len(left) > maxLeft {
			list = append(list, fmt.Sprintf("%d more", len(left)-maxLeft))
		}
		return &exit.Error{Code: exit.NamesLeft, What: fmt.Sprintf("%d of %d words are left in %s", len(left),
			len(words), name),
			Why: strings.Join(list, ", "), Remedy: "a policy that does not allow them, or another name in the program"}
	}
	if err != nil {
		return exit.CannotRead(name, &output.BadFile{Problem: err.Error()})
	}
	return nil
}

const maxLeft = 10

// write writes the file in its own format, or in the format of the new name.
func (f *redactCommand) write(cmd *cobra.Command, input string, by *redact.Redactor) error {
	in, err := redaction.Open(input)
	if err != nil {
		return cannotOpen(cmd, input, err)
	}
	defer in.Close()
	if in.Kind == redaction.Unknown {
		return unreadable(input)
	}
	defer cleanOnSignal()()
	file, err := outfile.Reserve(f.output)
	if err != nil {
		return exit.CannotWrite(err)
	}
	if to, asked := f.asked(in.Kind); asked != nil {
		return usageError(cmd, asked.Error())
	} else if to != in.Kind.String() {
		return f.convert(cmd, input, to, file, by)
	}
	var account *redaction.Account
	var failed error
	_, err = file.Write(func(w io.Writer) error {
		account, failed = in.Rewrite(sinking{w}, by)
		return failed
	})
	switch {
	case failed != nil && !errors.As(failed, new(*sinkError)):
		return exit.CannotRead(input, failed)
	case err != nil:
		return exit.CannotWrite(err)
	}
	f.tell(cmd, account, by)
	return nil
}

// sinking marks errors of writing, to distinguish them from errors of reading.
type sinking struct{ to io.Writer }

type sinkError struct{ error }

func (e *sinkError) Unwrap() error { return e.error }

func (s sinking) Write(b []byte) (int, error) {
	n, err := s.to.Write(b)
	if err != nil {
		err = &sinkError{err}
	}
	return n, err
}

// unreadable returns the error for a format that goprof can only write.
func unreadable(input string) error {
	if snap.IsNamed(input) {
		return &exit.Error{Code: exit.BadInput, What: "cannot read " + input, Why: "it is a zip: goprof snap writes one " +
			"without names, and viewers show parts without names", Remedy: "goprof snap PID --redact default, or " +
			exit.CommandLine([]string{"goprof", "dump", input, "--redact", "default"})}
	}
	return &exit.Error{Code: exit.BadInput, What: "cannot read " + input,
		Why: "it is neither JFR, pprof, collapsed stacks, goprof's JSON nor a log; pages and pictures are written, not " +
			"read",
		Remedy: "goprof redact of the recording that it was made of"}
}

// asked returns the format from the output's name or -f.
func (f *redactCommand) asked(in redaction.Kind) (string, error) {
	if in == redaction.JSON {
		if f.format != "" && f.format != format.JSON.String() {
			return "", errors.New("JSON of goprof's own is written as JSON again")
		}
		return in.String(), nil
	}
	if in == redaction.Log {
		to, err := format.Of(f.output, f.format)
		if f.format != "" || err == nil && to != format.Collapsed && f.output != outfile.Stdout {
			return "", errors.New("a log is written as text again")
		}
		return in.String(), nil
	}
	if f.format == "" && (f.output == outfile.Stdout || !hasExtension(f.output)) {
		return in.String(), nil
	}
	to, err := format.Of(f.output, f.format)
	if err != nil {
		return "", err
	}
	return to.String(), nil
}

// hasExtension reports whether a file's name has the ending of a format.
func hasExtension(name string) bool { return format.Trim(filepath.Base(name)) != filepath.Base(name) }

func (f *redactCommand) convert(cmd *cobra.Command, input, as string, file *outfile.File, by *redact.Redactor) error {
	to, err := format.Named(as)
	if err != nil {
		return usageError(cmd, err.Error())
	}
	in, err := (&inputFlags{all: to.Parts()}).open(cmd, input)
	if err != nil {
		return err
	}
	defer in.Close()
	in.redact(by)
	convertTo := convertFlags{output: f.output}
	convertTo.in.threads = in.file.Info().Format == recording.Collapsed && in.file.Info().Threads
	in.asked.threads = convertTo.in.threads
	samples, err := in.convert(cmd, to, &convertTo, file)
	if err == nil && !f.quiet {
		in.leftOut(cmd)
	}
	if err == nil && f.output != outfile.Stdout && !f.quiet {
		fmt.Fprintf(cmd.ErrOrStderr(), "written    %s: %s, %s\n", output.Printable(f.output), to, in.amount(samples))
	}
	return err
}

// redact removes names from everything that is read from now on.
func (in *openInput) redact(by *redact.Redactor) {
	if by == nil {
		return
	}
	in.src, in.redacted = redaction.Of(in.src, by), true
}

func (in *openInput) pageName() string {
	if in.redacted {
		return outfile.Stdout
	}
	return in.name
}

// maxDropped limits how many removed event types are named.
const maxDropped = 12

// tell reports what was removed from a JFR file. An application's own event types contain its names.
func (f *redactCommand) tell(cmd *cobra.Command, a *redaction.Account, by *redact.Redactor) {
	if f.quiet || a.JFR == nil {
		return
	}
	to, r := cmd.ErrOrStderr(), a.JFR
	fmt.Fprintf(to, "kept       %d events of %d chunks; %d texts in them are empty\n", r.Events, r.Chunks, r.Texts)
	names, all := r.DroppedNames(), int64(0)
	for _, n := range names {
		all += r.Dropped[n]
	}
	if len(names) > 0 {
		fmt.Fprintf(to, "left out   %d events of %d types:", all, len(names))
		for i, n := range names {
			if i == maxDropped {
				fmt.Fprintf(to, " ...")
				break
			}
			fmt.Fprintf(to, " %s (%d)", output.CleanName(by.Class(n)), r.Dropped[n])
		}
		fmt.Fprintln(to)
	}
	if r.CutOff != nil {
		fmt.Fprintf(to, "goprof: the last chunk is not whole, and left out (%s)\n", output.Printable(r.CutOff.Error()))
	}
}
