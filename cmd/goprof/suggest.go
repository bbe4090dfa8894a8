package main

import (
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

// These functions guess the meaning of an unknown flag: a known flag with a wrong letter, or a flag of async-profiler's
// asprof. The remedy is the typed command with the right flag.

func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var value *pflag.InvalidValueError
	switch {
	case errors.Is(err, pflag.ErrHelp): // --help-all
		return pflag.ErrHelp
	case errors.As(err, &unknown):
		e := usageError(cmd, flagProblem(err))
		e.Remedy = cmd.CommandPath() + " --help"
		if _, is := briefs[cmd.Name()]; is {
			e.Remedy += "-all"
		}
		suggestFlag(cmd, e, unknown, os.Args)
		return e
	case errors.As(err, &value) && value.GetFlag().Name == "pid" && (value.GetValue() + "-")[0] == '-':
		return &exit.Error{Code: exit.General, What: fmt.Sprintf("--pid has no number, but %q", value.GetValue()),
			Why: "a variable or a search for the process may have given nothing", Remedy: "goprof list"}
	case errors.As(err, &value) && value.GetFlag().Value.Type() == "duration":
		return wrongTime(cmd, value.GetFlag().Name, value.GetValue(), err)
	case errors.As(err, &value):
		return usageError(cmd, flagProblem(err), without(value.GetFlag().Name))
	}
	return usageError(cmd, flagProblem(err))
}

func wrongTime(cmd *cobra.Command, name, text string, err error) error {
	number, e := strconv.ParseFloat(text, 64)
	switch {
	case e == nil && number == 0 && name == "duration":
		return usageError(cmd, "--duration 0 is no time: without it there is no limit, and Ctrl-C ends it", without(name))
	case e == nil && number > 0:
		return usageError(cmd, fmt.Sprintf("invalid argument %q for --%s: a time has a unit, as in %[1]sms or %[1]ss",
			text, name), with(name, text+"s"))
	}
	return usageError(cmd, flagProblem(err), without(name))
}

func suggestFlag(cmd *cobra.Command, e *exit.Error, unknown *pflag.NotExistError, args []string) {
	name, letters := unknown.GetSpecifiedName(), unknown.GetSpecifiedShortnames()
	if !cmd.HasParent() {
		if record := recordWith(cmd, name, letters); record && len(args) > 1 {
			e.Why = "which command?"
			e.Remedy = exit.CommandLine(slices.Insert(slices.Clone(args), 1, "record"))
		}
		return
	}
	if cmd.Name() == "record" && suggestOfAsprof(e, name, letters, args) {
		return
	}
	if cmd.Name() == "list" && (name == "pid" || name == "p" || letters == "p") {
		e.Why = "list takes a pid without a flag"
		e.Remedy = "goprof list PID"
		return
	}
	if letters != "" {
		return
	}
	if near := nearest(name, flagNames(cmd)); near != "" {
		e.Why = "did you mean --" + near + "?"
		e.Remedy = exit.CommandLine(withFlag(args, "--"+name, "--"+near))
	}
}

// recordWith reports whether record has a flag that was given without a command.
func recordWith(root *cobra.Command, name, letters string) bool {
	record, _, err := root.Find([]string{"record"})
	if err != nil || record == root {
		return false
	}
	if letters != "" {
		return record.Flags().ShorthandLookup(name) != nil || name == "e"
	}
	return record.Flags().Lookup(name) != nil
}

func flagNames(cmd *cobra.Command) (names []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}

// nearest returns the name that differs in the fewest letters, or "" if none is near.
func nearest(name string, names []string) (near string) {
	if len(name) < 2 || len(name) > 40 {
		return ""
	}
	least := 1 + min(2, len(name)/3)
	for _, n := range names {
		if strings.HasPrefix(n, name) && len(name) > 2 {
			return n
		}
		if d := distance(name, n); d < least {
			near, least = n, d
		}
	}
	return near
}

// distance returns how many letters must be inserted, deleted, replaced or swapped with a neighbour to turn a into b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// withFlag replaces a flag in a command line by other words. The flag may have its value behind a "=".
func withFlag(args []string, flag string, words ...string) []string {
	args = slices.Clone(args)
	for i, a := range args {
		switch value, is := strings.CutPrefix(a, flag+"="); {
		case a == "--":
			return args
		case a == flag:
			return slices.Replace(args, i, i+1, words...)
		case is && len(words) > 0:
			words = slices.Clone(words)
			words[len(words)-1] += "=" + value
			return slices.Replace(args, i, i+1, words...)
		}
	}
	return args
}
