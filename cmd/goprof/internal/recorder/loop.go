//go:build linux

package recorder

import (
	"context"
	"fmt"
	"sync"
	"time"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/product"
	"goprof/output"
)

// loop records one file after the other. The caller finishes the last one. A file is finished while the next one is
// recorded. Only one file is finished at a time.
func (r *Recorder) loop(ctx context.Context) (last result) {
	var finishing sync.WaitGroup
	defer finishing.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	began := time.Now()
	for {
		res := r.once(ctx, r.o.lap(time.Since(began)))
		finishing.Wait()
		if r.o.over(time.Since(began)) || res.err != nil || r.loopErr != nil || ctx.Err() != nil ||
			r.session.Process.Alive() != nil {
			return res
		}
		done := r.out
		next, err := r.o.Files.Reserve(r.pid)
		if err != nil {
			r.loopErr = exit.CannotWrite(err)
			return res
		}
		r.out = next
		finishing.Go(func() {
			if r.loopErr = r.finishOne(done, &res); r.loopErr != nil {
				stop()
			}
		})
	}
}

// lap returns the length of the next file. spent is the loop's time so far. The length is never 0, which would mean no
// limit.
func (o *Options) lap(spent time.Duration) time.Duration {
	if o.Duration == 0 {
		return o.Loop
	}
	return max(min(o.Loop, o.Duration-spent), 1)
}

// over reports whether the loop's time is over. The time includes finishing the last file, which may take longer than
// recording it.
func (o *Options) over(spent time.Duration) bool {
	return o.Duration > 0 && spent >= o.Duration
}

// finishOne writes one of a loop's files, and reports it.
func (r *Recorder) finishOne(out *product.Outputs, res *result) error {
	name, err := finish(out, res, false)
	if err != nil || name == "" {
		return err
	}
	if !r.o.Quiet {
		fmt.Fprintf(r.talk, "goprof: %d samples of %s are in %s\n", res.summary.AllSamples(),
			output.Round(res.summary.Meta.Duration), output.Printable(name))
	}
	r.keepNewest(out)
	return nil
}

// keepNewest deletes the oldest files of this run if there are too many. It never deletes a file that another run has
// made, even if it has the same name.
func (r *Recorder) keepNewest(out *product.Outputs) {
	r.made = append(r.made, out.Made())
	for r.o.Keep > 0 && len(r.made) > r.o.Keep {
		for _, f := range r.made[0] {
			if r.stillNamed(f.Name()) {
				continue
			}
			if err := f.Delete(); err != nil {
				exit.Tell(r.talk, fmt.Errorf("cannot delete %s, which --keep does not keep: %w", f.Name(), err))
			}
		}
		r.made = r.made[1:]
	}
}

// stillNamed reports whether a newer file of this run has the same name.
func (r *Recorder) stillNamed(name string) bool {
	for _, files := range r.made[1:] {
		for _, f := range files {
			if f.Name() == name {
				return true
			}
		}
	}
	return false
}
