//go:build linux

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// A goprof that is killed, or ends by a panic, leaves the terminal as its screen needs it: no echo, no line, no
// Ctrl-C. The watchdog outlives goprof, so it puts that right.

// terminalKeeper knows what a terminal was like before goprof drew on it.
type terminalKeeper struct {
	terminal *os.File
	before   *unix.Termios
}

// keepTerminal notes how the controlling terminal is now.
func keepTerminal() terminalKeeper {
	terminal, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return terminalKeeper{}
	}
	before, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err != nil || isRaw(before) {
		return terminalKeeper{}
	}
	return terminalKeeper{terminal, before}
}

// endOfScreen ends what a screen of Bubble Tea sets: keyboard modes, bracketed paste, the hidden cursor, the other
// screen, styles (xterm, ctlseqs).
const endOfScreen = "\x1b[>4m\x1b[<1u\x1b[?2004l\x1b[?25h\x1b[?1049l\x1b[0m"

// restore puts the terminal right, if goprof has left it as its screen needs it. A shell's own line editor, which may
// be quicker, keeps the signals of keys on: then nothing is to be done.
func (k terminalKeeper) restore() {
	if k.terminal == nil {
		return
	}
	defer k.terminal.Close()
	now, err := unix.IoctlGetTermios(int(k.terminal.Fd()), unix.TCGETS)
	if err != nil || !isRaw(now) {
		return
	}
	// The terminal is not ours any more: it asks by SIGTTOU who changes it from the background, unless that is ignored.
	unix.IoctlSetTermios(int(k.terminal.Fd()), unix.TCSETS, k.before)
	k.terminal.WriteString(endOfScreen)
}

// isRaw reports whether keys neither make lines nor signals.
func isRaw(t *unix.Termios) bool { return t.Lflag&(unix.ISIG|unix.ICANON) == 0 }
