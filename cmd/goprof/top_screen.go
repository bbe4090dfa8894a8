//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/top"
	"goprof/process"
	"goprof/session"
)

// The screen of top. Bubble Tea does what the terminal needs: modes, keys, and drawing only what has changed. Package
// output/top makes the content. docs/decisions/0013 says why.

// Messages to the screen from the goroutine that gathers.
type (
	readingMsg   struct{ *top.Reading }
	stackMsg     struct{ *top.Stack }
	sayMsg       string
	recordingMsg string
)

// topScreen is the screen as Bubble Tea wants it.
type topScreen struct {
	model         *top.Model
	palette       top.Palette
	columns, rows int
	asks          chan<- top.Action
	turns         *turns
	shown         *top.Reading // the last one
}

// screenColumns and screenRows are assumed until the terminal has told its size.
const screenColumns, screenRows = 80, 24

func (s *topScreen) Init() tea.Cmd { return nil }

func (s *topScreen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		s.columns, s.rows = msg.Width, msg.Height
	case readingMsg:
		s.shown = msg.Reading
		s.model.Show(msg.Reading)
	case stackMsg:
		s.model.ShowStack(msg.Stack)
	case sayMsg:
		s.model.Say(string(msg))
	case recordingMsg:
		s.model.Recording(string(msg))
	case tea.KeyPressMsg:
		return s, s.do(s.model.Key(msg.String(), msg.Text))
	}
	return s, nil
}

// do does what the user asks for.
func (s *topScreen) do(a top.Action) tea.Cmd {
	switch a.Kind {
	case top.None:
		return nil
	case top.Quit:
		return func() tea.Msg { s.turns.end(); return tea.Quit() }
	case top.Suspend:
		unix.Kill(os.Getpid(), unix.SIGTSTP) // as if the terminal had handled Ctrl-Z: see aroundStop
		return nil
	}
	select {
	case s.asks <- a:
	default:
		s.model.Say("busy: the last one is not done yet")
	}
	return nil
}

func (s *topScreen) View() tea.View {
	v := tea.NewView(top.Render(s.model.Draw(s.columns, s.rows), s.palette))
	v.AltScreen = true
	return v
}

// paletteOf says whether the terminal may show colours (no-color.org).
func paletteOf(environ func(string) string) top.Palette {
	if environ("NO_COLOR") != "" {
		return top.NoColour
	}
	return top.Colours
}

// framesPerSecond bounds how often the screen is drawn. The effect of a key is seen soon.
const framesPerSecond = 10

// errTargetEnded ends the screen.
var errTargetEnded = errors.New("the process has ended")

// show shows readings until the user quits, ctx is done, the time is over, or the process has ended.
//
// show calls catchNoMore when the screen is gone. From then on a signal ends goprof at once.
func (w *topWatch) show(ctx context.Context, catchNoMore func(), cmd *cobra.Command) error {
	asks := make(chan top.Action, 4)
	screen := &topScreen{model: top.New(), palette: paletteOf(os.Getenv), columns: screenColumns, rows: screenRows,
		asks: asks, turns: newTurns()}
	program := tea.NewProgram(screen, tea.WithoutSignalHandler(), tea.WithFPS(framesPerSecond),
		tea.WithInput(os.Stdin), tea.WithOutput(os.Stdout))
	noMoreStops := session.StopAround(aroundStop(program, screen.turns))
	defer noMoreStops()
	if w.flags.duration.Duration > 0 {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, w.flags.duration.Duration)
		defer end()
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w.begin(ctx, 0)
	gathered := make(chan error, 1)
	go func() {
		defer restoreOnPanic(program)
		err := w.gather(ctx, program, asks)
		gathered <- err
		screen.turns.end()
		program.Quit()
	}()
	_, err := program.Run()
	close(screen.turns.done)
	screen.turns.end() // even if it has failed
	stop()
	catchNoMore()
	ended := <-gathered
	w.stopSamp()
	<-w.samples.ended
	for _, text := range w.samples.takeTold() { // a recording ends with the screen
		fmt.Fprintf(cmd.ErrOrStderr(), "goprof: %s\n", output.Printable(text))
	}
	if ended != nil {
		return w.tellEnd(cmd, screen, ended)
	}
	if err != nil {
		return &exit.Error{Code: exit.General, What: "cannot show the screen", Err: err}
	}
	return nil
}

// tellEnd says that the process has ended, and prints the last screen so that it can still be read.
func (w *topWatch) tellEnd(cmd *cobra.Command, screen *topScreen, err error) error {
	if screen.shown == nil || !errors.Is(err, errTargetEnded) {
		return attachError(w.pid, err)
	}
	for _, line := range screen.model.Draw(screen.columns, screen.rows)[:max(screen.rows-1, 0)] {
		fmt.Fprintln(cmd.OutOrStdout(), line.Text())
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "goprof: process %d has ended: this is the last that was seen of it\n", w.pid)
	return nil
}

// firstReading is when the first reading is shown, even if readings come less often.
const firstReading = 500 * time.Millisecond

// gather makes readings and does what the user asks for, until ctx is done or the process has ended.
func (w *topWatch) gather(ctx context.Context, program *tea.Program, asks <-chan top.Action) error {
	if _, err := w.read(true); err != nil {
		return w.ended(err)
	}
	next := time.NewTimer(min(firstReading, w.flags.interval.Duration))
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
				if looksAt = a.TID; looksAt != 0 {
					program.Send(stackMsg{w.stack(looksAt)})
				}
			case top.Dump:
				w.tellDump(program)
			case top.Record:
				w.toggleRecording(program)
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
		program.Send(readingMsg{r})
		if looksAt != 0 {
			program.Send(stackMsg{w.stack(looksAt)})
		}
		program.Send(recordingMsg(w.samples.recording()))
		for _, text := range w.samples.takeTold() {
			program.Send(sayMsg(text))
		}
		next.Reset(max(w.flags.interval.Duration-time.Since(began), min(cost*readingShare, mostBetween)))
	}
}

// With thousands of threads a reading costs much. The next reading comes no sooner than readingShare times the cost of
// the last one, and no later than mostBetween. So readings take a twentieth of a CPU.
const (
	readingShare = 20
	mostBetween  = 10 * time.Second
)

// ended makes one error of all errors that say that the process has ended.
func (w *topWatch) ended(err error) error {
	if errors.Is(err, process.ErrGone) || w.aside.Process.Alive() != nil {
		return errTargetEnded
	}
	return err
}

func (w *topWatch) tellDump(program *tea.Program) {
	program.Send(sayMsg("writing a dump ..."))
	name, err := w.dump()
	if err != nil {
		program.Send(sayMsg("no dump: " + err.Error()))
		return
	}
	program.Send(sayMsg("written " + name))
}

func (w *topWatch) toggleRecording(program *tea.Program) {
	name, err := w.samples.record(w.flags.output)
	switch {
	case err != nil:
		program.Send(sayMsg("no recording: " + err.Error()))
	case name != "":
		program.Send(recordingMsg(name))
	default:
		program.Send(recordingMsg(""))
		program.Send(sayMsg("the recording ends ..."))
	}
}

// restoreOnPanic gives the terminal back before a panic ends goprof. Bubble Tea does so in its own goroutines.
func restoreOnPanic(program *tea.Program) {
	if p := recover(); p != nil {
		program.Kill()
		panic(p)
	}
}

// inForeground reports whether this process has the terminal.
func inForeground() bool {
	group, err := unix.IoctlGetInt(int(os.Stdout.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

// foregroundTries bounds how often goprof stops to wait for the foreground. Where no shell would continue goprof, the
// kernel does not stop it.
const foregroundTries = 3

// waitForForeground stops this process while it is in the background, as writing to the terminal would. A shell says
// so, and fg makes goprof go on.
func waitForForeground() bool {
	for range foregroundTries {
		if inForeground() {
			return true
		}
		unix.Kill(os.Getpid(), unix.SIGTTOU)
		time.Sleep(10 * time.Millisecond)
	}
	return inForeground()
}

// turns keeps the end of the screen apart from a stop. After a stop goprof takes the terminal again. If Bubble Tea
// ended its screen at that moment, because the time is over or the JVM has ended, the terminal would not be given back.
type turns struct {
	sync.Mutex               // held from before a stop until goprof has the terminal again
	over       bool          // the screen ends
	done       chan struct{} // closed when the screen has ended and the terminal was given back
}

func newTurns() *turns { return &turns{done: make(chan struct{})} }

// end waits until no stop is under way, and marks the screen as ended.
func (t *turns) end() {
	t.Lock()
	defer t.Unlock()
	t.over = true
}

// endTime bounds how long a stop waits for the end of the screen.
const endTime = 2 * time.Second

// atEnd stops once the terminal was given back for the last time. In the background it cannot be given back.
func (t *turns) atEnd(stop func()) {
	if inForeground() {
		select {
		case <-t.done:
		case <-time.After(endTime):
		}
	}
	stop()
}

// aroundStop gives the terminal back before this process is stopped, and takes it again afterwards. Only a process in
// the foreground may do either: the kernel would send SIGTTOU to one in the background again and again.
func aroundStop(program *tea.Program, turns *turns) func(unix.Signal, func()) {
	return func(_ unix.Signal, stop func()) {
		turns.Lock()
		defer turns.Unlock()
		if turns.over {
			turns.atEnd(stop)
			return
		}
		released := inForeground() && program.ReleaseTerminal() == nil
		stop()
		for range foregroundTries {
			if inForeground() {
				break
			}
			stop() // continued in the background (bg)
		}
		switch {
		case !inForeground():
			turns.over = true
			program.Quit()
		case released:
			program.RestoreTerminal()
			program.Send(tea.ClearScreen())
		}
	}
}
