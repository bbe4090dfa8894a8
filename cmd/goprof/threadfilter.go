//go:build linux

package main

import (
	"fmt"
	"regexp"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// threadFilter chooses threads by "name tid=N".
type threadFilter struct {
	only, not   string
	these, none *regexp.Regexp
}

func (f *threadFilter) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.only, "thread", "", "only threads that `regex` finds in \"name tid=N\"; the others are left alone")
	fs.StringVar(&f.not, "exclude-thread", "", "no threads that `regex` finds in \"name tid=N\"")
}

func (f *threadFilter) check(cmd *cobra.Command) (err error) {
	for flag, it := range map[string]struct {
		text string
		to   **regexp.Regexp
	}{"thread": {f.only, &f.these}, "exclude-thread": {f.not, &f.none}} {
		if it.text == "" {
			continue
		}
		if *it.to, err = regexp.Compile(it.text); err != nil {
			return usageError(cmd, fmt.Sprintf("--%s: %v", flag, err), without(flag))
		}
	}
	return nil
}

// wants is nil if all threads are wanted.
func (f *threadFilter) wants() func(string) bool {
	if f.these == nil && f.none == nil {
		return nil
	}
	return func(thread string) bool {
		return (f.these == nil || f.these.MatchString(thread)) && (f.none == nil || !f.none.MatchString(thread))
	}
}
