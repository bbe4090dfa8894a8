//go:build linux

package recorder

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"time"

	"goprof/cmd/goprof/product"
	"goprof/cmd/goprof/terminal"
	"goprof/output"
	"goprof/profile"
)

const (
	// progressEvery is the time between two updates of the progress line.
	progressEvery = time.Second
	// A pipe gets a line after firstTold, and then at doubled intervals up to mostTold, so that logs stay short.
	firstTold, mostTold = 10 * time.Second, 10 * time.Minute
	// goprof spends at most 1/glanceShare of the time on the hottest methods of the progress line.
	glanceShare = 100
)

// progress composes the progress line: how far a recording is, and what it has seen.
type progress struct {
	line      *terminal.StatusLine
	o         *Options
	recorders []*Recorder
	seen      *profile.Summary // of one recording, with the hottest methods; nil: not known
	seenNext  time.Time        // the time of its next update
}

// showProgress keeps a progress line on a terminal until stop is called. Elsewhere it writes a line now and then.
func showProgress(line *terminal.StatusLine, o *Options, recorders []*Recorder) (stop func()) {
	if o.Quiet {
		return func() {}
	}
	p := &progress{line: line, o: o, recorders: recorders}
	end := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() { p.run(end) })
	return func() {
		close(end)
		all.Wait()
		line.Wipe()
	}
}

func (p *progress) run(end <-chan struct{}) {
	wait := progressEvery
	if !p.line.Shown() {
		wait = firstTold
	}
	for {
		select {
		case <-end:
			return
		case <-time.After(wait):
		}
		sums := p.look()
		if p.line.Shown() {
			p.line.Draw(p.text(sums, p.line.Columns()))
			continue
		}
		fmt.Fprintf(p.line, "goprof: %s\n", p.text(sums, toldColumns))
		wait = min(2*wait, mostTold)
	}
}

// toldColumns is the width of a line for a pipe.
const toldColumns = 140

// look gets the state of each recording. If that takes long, it gets the hottest methods less often.
func (p *progress) look() (sums []profile.Summary) {
	began := time.Now()
	glance := len(p.recorders) == 1 && !began.Before(p.seenNext)
	for _, r := range p.recorders {
		for i, one := range r.parts() {
			var sum profile.Summary
			var stacks *profile.Profile
			var before output.Hottest // of the stacks that are no longer in memory
			var out *product.Outputs
			if !r.visit(one, func(now *profile.Profile, s *profile.Summary) {
				if sum = *s; glance && i == 0 {
					stacks, before, out = now.Copy(), one.hottest.SoFar(), r.out
				}
			}) {
				continue
			}
			sums = append(sums, sum)
			if stacks != nil {
				seen := sum
				before.Describe(&seen, output.TreeOf(stacks))
				p.seen = out.Shown(&seen)
				p.seenNext = time.Now().Add(max(progressEvery, glanceShare*time.Since(began)))
			}
		}
	}
	return sums
}

// text returns one line: the progress, and as many of the hottest methods as fit.
func (p *progress) text(sums []profile.Summary, columns int) string {
	line := progressLine(cmp.Or(p.o.Loop, p.o.Duration), sums)
	if p.seen != nil {
		if seen := output.AtAGlance(p.seen, columns-len(line)-2); seen != "" {
			line += "  " + seen
		}
	}
	if p.line.Shown() && len(line)+len(howToEnd) < columns {
		line += howToEnd
	}
	return line
}

const howToEnd = "  (Ctrl-C ends and writes)"

func progressLine(of time.Duration, sums []profile.Summary) string {
	var samples, truncated, lost int64
	var passed time.Duration
	for i := range sums {
		samples += sums[i].Samples
		truncated += sums[i].Truncated
		lost += sums[i].Lost
		passed = max(passed, sums[i].Meta.Duration)
	}
	var b strings.Builder
	if of > 0 {
		fmt.Fprintf(&b, "%v left of %v", max(of-passed, 0).Round(time.Second), of)
	} else {
		b.WriteString(passed.Round(time.Second).String())
	}
	fmt.Fprintf(&b, "  %d samples", samples)
	if truncated > 0 {
		fmt.Fprintf(&b, "  %d truncated", truncated)
	}
	if lost > 0 {
		fmt.Fprintf(&b, "  %d lost", lost)
	}
	return b.String()
}
