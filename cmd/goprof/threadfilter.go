//go:build linux

package main

import (
	"fmt"
	"regexp"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// threadFilter chooses threads by "name tid=N".
type threadFilter struct{ only, not string }

func (f *threadFilter) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.only, "thread", "", "only threads that `regex` finds in \"name tid=N\"; the others are left alone")
	fs.StringVar(&f.not, "exclude-thread", "", "no threads that `regex` finds in \"name tid=N\"")
}

// check returns a filter of threads, or nil if all are wanted.
func (f *threadFilter) check(cmd *cobra.Command) (wants func(thread string) bool, err error) {
	var these, none *regexp.Regexp
	for flag, it := range map[string]struct {
		text string
		to   **regexp.Regexp
	}{"thread": {f.only, &these}, "exclude-thread": {f.not, &none}} {
		if it.text == "" {
			continue
		}
		if *it.to, err = regexp.Compile(it.text); err != nil {
			return nil, usageError(cmd, fmt.Sprintf("--%s: %v", flag, err), without(flag))
		}
	}
	if these == nil && none == nil {
		return nil, nil
	}
	return func(thread string) bool {
		return (these == nil || these.MatchString(thread)) && (none == nil || !none.MatchString(thread))
	}, nil
}
