//go:build linux

package topscreen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/terminal"
	"goprof/output"
	"goprof/output/top"
	"goprof/process"
	"goprof/session"
)

// screen is the screen of top. Package output/top makes its content, and package terminal shows it.
type screen struct {
	model    *top.Model
	palette  top.Palette
	terminal *terminal.Terminal
	asks     chan<- top.Action
	changes  chan func(*screen) // from other goroutines
	shown    *top.Reading       // the last reading
}

// run shows the screen until the user quits, the terminal is closed, or ctx is done.
func (s *screen) run(ctx context.Context) {
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, unix.SIGWINCH)
	defer signal.Stop(resized)
	for {
		s.terminal.Draw(top.Render(s.model.Draw(s.terminal.Size()), s.palette))
		select {
		case <-ctx.Done():
			return
		case <-resized:
		case change := <-s.changes:
			change(s)
		case key, ok := <-s.terminal.Keys():
			action := s.model.Key(key.Name, key.Text)
			if !ok || action.Kind == top.Quit {
				return
			}
			s.do(action)
		}
	}
}

// change changes the screen from another goroutine. It does nothing after ctx is done.
func (s *screen) change(ctx context.Context, change func(*screen)) {
	select {
	case s.changes <- change:
	case <-ctx.Done():
	}
}

func (s *screen) say(ctx context.Context, text string) {
	s.change(ctx, func(s *screen) { s.model.Say(text) })
}

// do executes a user's key.
func (s *screen) do(a top.Action) {
	switch a.Kind {
	case top.None:
		return
	case top.Suspend:
		unix.Kill(os.Getpid(), unix.SIGTSTP) // as if the terminal had handled Ctrl-Z: see aroundStop
		return
	}
	select {
	case s.asks <- a:
	default:
		s.model.Say("busy: the last one is not done yet")
	}
}

// paletteOf returns whether the terminal may show colours (no-color.org).
func paletteOf(environ func(string) string) top.Palette {
	if environ("NO_COLOR") != "" {
		return top.NoColour
	}
	return top.Colours
}

var errTargetEnded = errors.New("the process has ended")

// Show shows readings on the terminal until the user quits, ctx is done, the time is over, or the process has ended. It
// calls gone when the screen is closed. Then it writes the messages about recordings to talk. If the process has ended,
// it also writes the last screen to out.
func (w *Watch) Show(ctx context.Context, gone func(), out, talk io.Writer) error {
	shown, err := terminal.Open(os.Stdin, os.Stdout)
	if err != nil {
		return &exit.Error{Code: exit.General, What: "cannot show the screen", Err: err}
	}
	defer shown.Close()
	asks := make(chan top.Action, 4)
	on := &screen{model: top.New(), palette: paletteOf(os.Getenv), terminal: shown, asks: asks,
		changes: make(chan func(*screen))}
	if w.o.Duration > 0 {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, w.o.Duration)
		defer end()
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	noMoreStops := session.StopAround(aroundStop(ctx, on, stop))
	defer noMoreStops()
	w.begin(ctx, 0)
	gathered := make(chan error, 1)
	go func() {
		defer stop()
		defer restoreOnPanic(shown)
		gathered <- w.gather(ctx, on, asks)
	}()
	on.run(ctx)
	shown.Close()
	stop()
	gone()
	ended := <-gathered
	w.stopSamp()
	<-w.samples.ended
	for _, text := range w.samples.takeTold() { // recordings end with the screen
		fmt.Fprintf(talk, "goprof: %s\n", output.Printable(text))
	}
	if ended != nil {
		return w.tellEnd(on, ended, out, talk)
	}
	return nil
}

// tellEnd reports the end of the process, and prints the last screen so that it remains readable.
func (w *Watch) tellEnd(on *screen, err error, out, talk io.Writer) error {
	if on.shown == nil || !errors.Is(err, errTargetEnded) {
		return exit.CannotLook(w.pid, err)
	}
	columns, rows := on.terminal.Size()
	for _, line := range on.model.Draw(columns, rows)[:max(rows-1, 0)] {
		fmt.Fprintln(out, line.Text())
	}
	fmt.Fprintf(talk, "goprof: process %d has ended: this is the last that was seen of it\n", w.pid)
	return nil
}

// firstReading is the time of the first reading, even if readings come less often.
const firstReading = 500 * time.Millisecond

// gather makes readings and handles keys, until ctx is done or the process has ended.
func (w *Watch) gather(ctx context.Context, on *screen, asks <-chan top.Action) error {
	if _, err := w.read(true); err != nil {
		return w.ended(err)
	}
	next := time.NewTimer(min(firstReading, w.o.Interval))
	defer next.Stop()
	looksAt := 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.samples.ended:
			if ctx.Err() != nil {
				return nil
			}
			if w.samples.err != nil {
				return w.ended(w.samples.err)
			}
			return errTargetEnded
		case a := <-asks:
			switch a.Kind {
			case top.Look:
				looksAt = a.TID
				w.look(ctx, on, looksAt)
			case top.Dump:
				w.tellDump(ctx, on)
			case top.Record:
				w.toggleRecording(ctx, on)
			}
			continue
		case <-next.C:
		}
		began, cost := time.Now(), session.OwnCPU()
		r, err := w.read(false)
		cost = session.OwnCPU() - cost
		if err != nil {
			return w.ended(err)
		}
		recording := w.samples.recording()
		on.change(ctx, func(s *screen) {
			s.shown = r
			s.model.Show(r)
			s.model.Recording(recording)
		})
		w.look(ctx, on, looksAt)
		for _, text := range w.samples.takeTold() {
			on.say(ctx, text)
		}
		next.Reset(max(w.o.Interval-time.Since(began), min(cost*readingShare, mostBetween)))
	}
}

// With thousands of threads a reading is expensive. The next reading waits readingShare times the cost of the last one,
// up to mostBetween. So readings take a twentieth of a CPU.
const (
	readingShare = 20
	mostBetween  = 10 * time.Second
)

// ended returns errTargetEnded for any error after the process has ended, and other errors unchanged.
func (w *Watch) ended(err error) error {
	if errors.Is(err, process.ErrGone) || w.aside.Process.Alive() != nil {
		return errTargetEnded
	}
	return err
}

// look shows the stack of a thread, or of none if tid is 0.
func (w *Watch) look(ctx context.Context, on *screen, tid int) {
	if tid == 0 {
		return
	}
	stack := w.stack(tid)
	on.change(ctx, func(s *screen) { s.model.ShowStack(stack) })
}

func (w *Watch) tellDump(ctx context.Context, on *screen) {
	on.say(ctx, "writing a dump ...")
	name, err := w.dump()
	if err != nil {
		on.say(ctx, "no dump: "+err.Error())
		return
	}
	on.say(ctx, "written "+name)
}

func (w *Watch) toggleRecording(ctx context.Context, on *screen) {
	name, err := w.samples.record()
	on.change(ctx, func(s *screen) {
		switch {
		case err != nil:
			s.model.Say("no recording: " + err.Error())
			return
		case name == "":
			s.model.Say("the recording ends ...")
		}
		s.model.Recording(name)
	})
}

// restoreOnPanic restores the terminal before a panic ends goprof.
func restoreOnPanic(shown *terminal.Terminal) {
	if p := recover(); p != nil {
		shown.Close()
		panic(p)
	}
}

// aroundStop restores the terminal before this process is stopped, and takes it again afterwards. If the terminal
// cannot be taken again, the screen ends.
func aroundStop(ctx context.Context, on *screen, end func()) func(unix.Signal, func()) {
	return func(_ unix.Signal, stop func()) {
		if !on.terminal.Stop(stop) {
			end()
			return
		}
		on.change(ctx, func(*screen) {}) // redraws the screen
	}
}
