//go:build linux

package main

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"goprof/profile"
)

// progressEvery is how often the progress line is drawn anew.
const progressEvery = time.Second

// showProgress keeps a line on a terminal that says how far the recording is, until the
// function that it returns is called. Elsewhere it does nothing.
func showProgress(line *statusLine, f *recordFlags, recorders []*recorder) (stop func()) {
	if f.quiet || !line.shown() {
		return func() {}
	}
	end := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				line.draw(progressLine(cmp.Or(f.loop, f.duration.Duration), accounts(recorders)))
			}
		}
	})
	return func() {
		close(end)
		all.Wait()
		line.wipe()
	}
}

// accounts asks each recording how far it is.
func accounts(recorders []*recorder) []profile.Summary {
	var sums []profile.Summary
	for _, r := range recorders {
		for _, p := range r.parts() {
			r.visitPart(p, func(_ *profile.Profile, s *profile.Summary) { sums = append(sums, *s) })
		}
	}
	return sums
}

// progressLine is short: it must fit a terminal of 80 columns.
func progressLine(of time.Duration, sums []profile.Summary) string {
	var samples, truncated, lost int64
	var passed time.Duration
	for i := range sums {
		samples += sums[i].Samples
		truncated += sums[i].Truncated
		lost += sums[i].Lost
		passed = max(passed, sums[i].Meta.Duration)
	}
	line := passed.Round(time.Second).String()
	if of > 0 {
		line += " of " + of.String()
	}
	line += fmt.Sprintf("  %d samples", samples)
	if truncated > 0 {
		line += fmt.Sprintf("  %d truncated", truncated)
	}
	if lost > 0 {
		line += fmt.Sprintf("  %d lost", lost)
	}
	return line + "  (Ctrl-C ends and writes)"
}
