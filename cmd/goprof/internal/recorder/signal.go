//go:build linux

package recorder

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/product"
	"goprof/output"
	"goprof/output/outfile"
	"goprof/profile"
)

// writeOnSignal writes the samples so far at each signal, until stop is called.
func writeOnSignal(talk io.Writer, recorders []*Recorder, now <-chan os.Signal) (stop func()) {
	end := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for {
			select {
			case <-end:
				return
			case <-now:
				for _, r := range recorders {
					r.writeNow(talk)
				}
			}
		}
	})
	return func() {
		close(end)
		all.Wait()
	}
}

// writeNow writes the samples so far. The recording pauses only while they are copied.
func (r *Recorder) writeNow(talk io.Writer) {
	var now *profile.Profile
	var sum profile.Summary
	var out *product.Outputs
	var hottest output.Hottest
	if !r.visit(&r.part, func(p *profile.Profile, s *profile.Summary) {
		now, sum, out, hottest = p.Copy(), *s, r.out, r.hottest.SoFar()
	}) {
		return // the recording has ended, and will be written soon
	}
	for _, p := range r.beside {
		r.visit(p, func(_ *profile.Profile, s *profile.Summary) { sum.Parts = append(sum.Parts, p.further(s)) })
	}
	if sum.AllSamples() == 0 {
		fmt.Fprintf(talk, "goprof: no samples of process %d yet: nothing is written\n", r.pid)
		return
	}
	sum.Meta.Version, sum.Notes = r.o.Files.Version, r.notes(&sum)
	hottest.Describe(&sum, output.TreeOf(now))
	name, err := out.SoFar(&product.Recorded{Profile: now, Summary: &sum, At: r.session.Now()})
	switch {
	case errors.Is(err, product.ErrDone): // the loop has just finished a file, which holds all samples
	case errors.Is(err, product.ErrAtEnd): // the reader would count twice what is written twice
		fmt.Fprintln(talk, "goprof: SIGUSR1 writes what there is into a file (-o FILE); "+
			"what is not a file gets all of it at the end")
	case err != nil:
		exit.Tell(talk, exit.CannotWrite(err))
	case name != outfile.Stdout && !r.o.Quiet:
		fmt.Fprintf(talk, "goprof: %d samples so far are in %s\n", sum.AllSamples(), name)
	}
}
