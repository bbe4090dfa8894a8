package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/outfile"
	"goprof/output/recording"
)

// sampleFlags choose or shape samples. They do not apply to a table of an event's fields.
var sampleFlags = []string{"threads", "weight", "from", "to", "thread", "exclude-thread", "include", "exclude", "state",
	"hide-internal", "group-threads"}

// hasField reports whether --by names a field of --event, although --by is also a key of samples. The key of samples
// comes first if the event's samples have it, and for standard input, which can be read only once.
func (f *reportFlags) hasField(name string) bool {
	if name == outfile.Stdout || f.input.event == "" || recording.IsSample(f.input.event) {
		return false
	}
	_, err := recording.TableOf(name, f.input.event, f.by, nil)
	return err == nil
}

func (f *reportFlags) table(cmd *cobra.Command, name string) error {
	if given := givenOf(cmd, sampleFlags); len(given) > 0 {
		return usageError(cmd, fmt.Sprintf("--%s is for samples, and --event with a field counts all events: --where "+
			"FIELD=regex chooses", given[0]), without(given...))
	}
	var where []recording.Where
	for _, text := range f.where {
		field, want, is := strings.Cut(text, "=")
		re, err := regexp.Compile(want)
		if !is || field == "" {
			err = errors.New("it is no FIELD=regex")
		}
		if err != nil {
			return usageError(cmd, fmt.Sprintf("--where %q: %v", text, err), without("where"))
		}
		where = append(where, recording.Where{Field: field, Want: re})
	}
	if err := exit.NotItself(name, f.to); err != nil {
		return err
	}
	t, err := recording.TableOf(name, f.input.event, f.by, where)
	if err != nil {
		return cannotOpen(cmd, name, err)
	}
	for _, note := range t.Notes {
		fmt.Fprintf(cmd.ErrOrStderr(), "goprof: %s\n", output.Printable(note))
	}
	if f.top > 0 && len(t.Rows) > f.top {
		t.Omitted = len(t.Rows) - f.top
		t.Rows = t.Rows[:f.top]
	}
	return writeResult(cmd, f.to, func(w io.Writer) error {
		if f.asJSON {
			return output.WriteJSON(w, t)
		}
		return t.Text(w)
	})
}

func givenOf(cmd *cobra.Command, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !cmd.Flags().Changed(name) })
}
