//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/format"
	"goprof/output/outfile"
)

// loopFlags say when a recording begins a new file.
type loopFlags struct {
	every durationFlag
	keep  int
	loop  time.Duration // 0: never
}

// minLoop keeps file names different: the times in them have seconds.
const minLoop = time.Second

func (f *loopFlags) add(fs *pflag.FlagSet) {
	fs.Var(&f.every, "loop", "begin a new file each `time`: 10m. Its name gets %t, if it has none")
	fs.IntVar(&f.keep, "keep", 0, "with --loop: keep the newest `n` files of this run, and delete older ones (0: all)")
}

func (f *loopFlags) check(cmd *cobra.Command) error {
	f.loop = f.every.Duration
	switch {
	case f.loop != 0 && f.loop < minLoop:
		return usageError(cmd, fmt.Sprintf("--loop is %v or more", minLoop), with("loop", "10m"))
	case f.keep < 0:
		return usageError(cmd, "--keep is how many files to keep, 0 for all", without("keep"))
	case f.keep > 0 && f.loop == 0:
		return usageError(cmd, "--keep is for --loop, which makes more than one file", with("loop", "10m"))
	}
	return nil
}

// nameAt returns a file's name with its pid and time. fixed is false where goprof itself put the time into the name:
// such a file never replaces another one.
func (f *recordFlags) nameAt(name string, pid int, at time.Time) (full string, fixed bool) {
	fixed = f.loop == 0 || strings.Contains(strings.ReplaceAll(name, "%%", ""), "%t") || name == outfile.Stdout
	if !fixed {
		stem := format.Trim(name)
		name = stem + "-%t" + name[len(stem):]
	}
	return outfile.Expand(name, pid, at), fixed
}

func (f *recordFlags) fixedName() bool {
	_, fixed := f.nameAt(f.output, 0, time.Time{})
	return fixed
}

// loop records into one file after the other. The caller finishes the last one. A file is finished while the next one
// is recorded, and never two at a time.
func (r *recorder) loop(ctx context.Context) (last result) {
	var finishing sync.WaitGroup
	defer finishing.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	began := time.Now()
	for {
		res := r.once(ctx, r.flags.lap(time.Since(began)))
		finishing.Wait()
		if r.flags.over(time.Since(began)) || res.err != nil || r.loopErr != nil || ctx.Err() != nil ||
			r.session.Process.Alive() != nil {
			return res
		}
		done := r.out
		next, err := r.flags.reserve(r.pid)
		if err != nil {
			r.loopErr = outputFailed(err)
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

// lap is how long the next file is recorded, when the loop has spent so much time. It is never 0, which would mean no
// end.
func (f *recordFlags) lap(spent time.Duration) time.Duration {
	if f.duration.Duration == 0 {
		return f.loop
	}
	return max(min(f.loop, f.duration.Duration-spent), 1)
}

// over reports whether the loop's time is over. It counts time to the moment at which a file is done: to finish the
// file before may have taken longer than the file itself.
func (f *recordFlags) over(spent time.Duration) bool {
	return f.duration.Duration > 0 && spent >= f.duration.Duration
}

// finishOne writes one of a loop's files, and says so. Without samples there is no file.
func (r *recorder) finishOne(out *outputs, res *result) error {
	if res.summary.AllSamples() == 0 {
		return outputFailed(out.leaveOut(res.recorded(), false))
	}
	name, err := out.write(res.recorded())
	if err != nil {
		return outputFailed(err)
	}
	if !r.flags.quiet {
		fmt.Fprintf(r.talk, "goprof: %d samples of %s are in %s\n", res.summary.AllSamples(),
			output.Round(res.summary.Meta.Duration), output.Printable(name))
	}
	r.keepNewest(out)
	return nil
}

// keepNewest deletes the oldest files of this run if there are too many. A file that this run has not made stays, even
// if it has the same name.
func (r *recorder) keepNewest(out *outputs) {
	var files []*outfile.Made
	for _, f := range []*outfile.File{out.File(), out.summary} {
		if f == nil {
			continue
		}
		if made := f.Made(); made != nil {
			files = append(files, made)
		}
	}
	r.made = append(r.made, files)
	for r.flags.keep > 0 && len(r.made) > r.flags.keep {
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
func (r *recorder) stillNamed(name string) bool {
	for _, files := range r.made[1:] {
		for _, f := range files {
			if f.Name() == name {
				return true
			}
		}
	}
	return false
}
