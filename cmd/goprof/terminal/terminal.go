//go:build linux

// Package terminal draws a full screen on a terminal, and reads its keys. It uses only sequences that xterm and later
// terminals share (ECMA-48, and invisible-island.net/xterm/ctlseqs).
package terminal

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// enter shows the alternate screen without a cursor. Leave undoes that, and resets styles.
const (
	enter = "\x1b[?1049h\x1b[?25l"
	Leave = "\x1b[0m\x1b[?25h\x1b[?1049l"
)

// Terminal is a terminal that shows a screen.
type Terminal struct {
	in, out *os.File
	wake    *os.File // ends the reader of keys
	keys    chan Key

	mu            sync.Mutex // held while this process is stopped, too
	before        *term.State
	shown         []string // the lines on the screen; nil if not known
	columns, rows int
	closed        bool
	away          bool // something was to be drawn in the background
}

// Open takes the terminal: it shows an empty screen, and Keys gets every key.
func Open(in, out *os.File) (*Terminal, error) {
	woken, wake, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	t := &Terminal{in: in, out: out, wake: wake, keys: make(chan Key)}
	if err := t.take(); err != nil {
		woken.Close()
		wake.Close()
		return nil, err
	}
	go t.readKeys(woken)
	return t, nil
}

func (t *Terminal) take() error {
	before, err := term.MakeRaw(int(t.in.Fd()))
	if err != nil {
		return err
	}
	t.before, t.shown = before, nil
	if _, err = t.out.WriteString(enter); err != nil {
		term.Restore(int(t.in.Fd()), before)
	}
	return err
}

// takeAgain takes the terminal after this process was in the background, perhaps after a SIGSTOP. The terminal's modes
// then depend on the shell, so the modes from before are kept.
func (t *Terminal) takeAgain() error {
	before := t.before
	err := t.take()
	t.before, t.away = before, err != nil
	return err
}

// giveBack restores the terminal. The kernel forbids that in the background.
func (t *Terminal) giveBack() {
	if InForeground() {
		t.out.WriteString(Leave)
		term.Restore(int(t.in.Fd()), t.before)
	}
}

// Close restores the terminal, and ends Keys.
func (t *Terminal) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.closed = true
	t.wake.Close()
	t.giveBack()
}

// assumedColumns and assumedRows are used if the terminal does not know its size.
const assumedColumns, assumedRows = 80, 24

// Size returns the terminal's present size.
func (t *Terminal) Size() (columns, rows int) {
	size, err := unix.IoctlGetWinsize(int(t.out.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 || size.Row == 0 {
		return assumedColumns, assumedRows
	}
	return int(size.Col), int(size.Row)
}

// Draw shows the lines. It writes only lines that have changed. No line may be wider than the terminal, and each must
// end the styles that it begins. In the background Draw writes nothing: the kernel may answer a write with SIGTTOU and
// restart it after the handler without end (drivers/tty/tty_jobctrl.c, __tty_check_change: -ERESTARTSYS), while Stop
// waits for Draw.
func (t *Terminal) Draw(lines []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	if !InForeground() {
		t.away = true
		return
	}
	if t.away && t.takeAgain() != nil {
		return
	}
	columns, rows := t.Size()
	var b strings.Builder
	if t.shown == nil || columns != t.columns || rows != t.rows {
		t.shown, t.columns, t.rows = make([]string, rows), columns, rows
		b.WriteString("\x1b[2J")
	}
	for y := range rows {
		line := ""
		if y < len(lines) {
			line = lines[y]
		}
		if line != t.shown[y] {
			// The line is erased first. After a line of full width, erasing would remove its last character.
			fmt.Fprintf(&b, "\x1b[%d;1H\x1b[K%s", y+1, line)
			t.shown[y] = line
		}
	}
	t.out.WriteString(b.String())
}

// Stop restores the terminal, calls stop, which stops this process, and takes the terminal again. It returns false if
// the process was continued in the background. The caller must redraw the screen.
func (t *Terminal) Stop(stop func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		stop()
		return true
	}
	t.giveBack()
	stop()
	for range foregroundTries {
		if InForeground() {
			return t.take() == nil
		}
		stop() // continued in the background (bg)
	}
	return InForeground() && t.take() == nil
}
