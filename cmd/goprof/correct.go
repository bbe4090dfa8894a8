package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Errors of a wrong command line show a right one. The code that finds a fault also supplies the fix.

// fix changes words of a command line.
type fix func(cmd *cobra.Command, args []string) []string

// without removes flags.
func without(names ...string) fix {
	return func(cmd *cobra.Command, args []string) []string {
		for _, name := range names {
			args, _, _ = dropFlag(cmd, args, name)
		}
		return args
	}
}

// with sets a flag to another value, or adds the flag.
func with(name, value string) fix {
	return func(cmd *cobra.Command, args []string) []string {
		args, at, word := dropFlag(cmd, args, name)
		words := []string{word, value}
		if value == "" {
			words = words[:1]
		}
		return slices.Insert(args, at, words...)
	}
}

// withoutWord removes the last argument that equals word. Values of flags do not count. An argument behind -- counts
// only if no earlier one is equal.
func withoutWord(word string) fix {
	return func(cmd *cobra.Command, args []string) []string {
		found, dash := -1, len(args)
		for i := 1; i < dash; i++ { // args[0] is goprof
			f, _, inside := flagAt(cmd, args[i])
			switch {
			case args[i] == "--":
				dash = i
			case f != nil && f.NoOptDefVal == "" && !inside:
				i++
			case args[i] == word:
				found = i
			}
		}
		for i := len(args) - 1; i > dash && found < 0; i-- {
			if args[i] == word {
				found = i
			}
		}
		if found < 0 {
			return args
		}
		return slices.Delete(slices.Clone(args), found, found+1)
	}
}

// dropFlag removes a flag and its value. It returns the flag's place, or the place for a new flag, and the flag's
// spelling.
func dropFlag(cmd *cobra.Command, args []string, name string) (rest []string, at int, word string) {
	rest, at, word = slices.Clone(args), len(args), "--"+name
	if f := cmd.Flags().Lookup(name); f != nil && f.Shorthand != "" {
		word = "-" + f.Shorthand
	}
	for i := 0; i < len(rest); i++ {
		if rest[i] == "--" {
			return rest, min(at, i), word
		}
		f, spelled, inside := flagAt(cmd, rest[i])
		if f == nil {
			continue
		}
		length := 1
		if f.NoOptDefVal == "" && !inside {
			length = min(2, len(rest)-i)
		}
		if f.Name != name {
			i += length - 1
			continue
		}
		rest, at, word = slices.Delete(rest, i, i+length), min(at, i), spelled
		i--
	}
	return rest, min(at, len(rest)), word
}

// flagAt returns the flag of a word, its spelling, and whether its value is in the same word. It does not handle
// several short flags in one word, which stay unchanged.
func flagAt(cmd *cobra.Command, arg string) (f *pflag.Flag, spelled string, inside bool) {
	switch {
	case strings.HasPrefix(arg, "--"):
		name, _, is := strings.Cut(arg[2:], "=")
		return cmd.Flags().Lookup(name), "--" + name, is
	case len(arg) > 1 && arg[0] == '-':
		f = cmd.Flags().ShorthandLookup(arg[1:2])
		if f != nil && f.NoOptDefVal != "" && len(arg) > 2 {
			return nil, "", false
		}
		return f, arg[:2], len(arg) > 2
	}
	return nil, "", false
}

// firstExample returns the first example of a command, without its explanation.
func firstExample(cmd *cobra.Command) string {
	line, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n")
	line, _, _ = strings.Cut(line, "  ")
	return line
}
