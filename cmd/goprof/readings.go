//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goprof/profile"
)

// readings say how often something that may grow is read.
type readings struct {
	count int
	every time.Duration
}

const (
	readEvery   = 10 * time.Second
	maxReadings = 1000
)

func (r *readings) add(fs *pflag.FlagSet) {
	fs.IntVarP(&r.count, "count", "n", 1, "`number` of readings")
	fs.Var(asTime(&r.every), "every", "`time` from one reading to the next, with -n (10s)")
}

func (r *readings) check(cmd *cobra.Command) error {
	switch {
	case r.count < 1 || r.count > maxReadings:
		return usageError(cmd, fmt.Sprintf("-n is between 1 and %d", maxReadings), with("count", "6"))
	case r.count == 2:
		return usageError(cmd, "-n is 3 or more to see growth: two readings do not show how sure it is",
			with("count", "6"))
	case cmd.Flags().Changed("every") && r.count == 1:
		return usageError(cmd, "--every says when the next reading comes: -n N is missing", with("count", "6"))
	}
	if r.every == 0 {
		r.every = readEvery
	}
	return nil
}

// each makes the requested number of readings, and reports each. It returns how many were made: those before an error
// or before ctx's end count. what names what is read.
func (r *readings) each(ctx context.Context, log io.Writer, what string, read func() (string, error)) (int, error) {
	done := 0
	for next := time.Now(); done < r.count && sleepUntil(ctx, next); next = next.Add(r.every) {
		found, err := read()
		if err != nil && done == 0 {
			return 0, err
		} else if err != nil {
			fmt.Fprintf(log, "goprof: %s cannot be read any more: %d of %d readings\n", what, done, r.count)
			break
		}
		if done++; r.count > 1 {
			fmt.Fprintf(log, "goprof: reading %d of %d: %s\n", done, r.count, found)
		}
	}
	return done, nil
}

// tooFew reports that there are too few readings to show growth. why is the reason if they were made. The page has it
// as a note.
func tooFew(log io.Writer, readings int, why string) string {
	text := "fewer than three readings: what grows is not known"
	if readings >= profile.LeastReadings {
		text += " (" + why + ")"
	}
	fmt.Fprintf(log, "goprof: %s\n", text)
	return text
}
