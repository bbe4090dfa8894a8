//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
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

// terminalModes are those of the controlling terminal as text, for keepTerminal. goprof notes them, before it draws:
// the watchdog may begin when the screen is there already. They are empty where there is nothing to be put right.
func terminalModes() string {
	terminal, err := openTerminalOfOurs()
	if err != nil {
		return ""
	}
	defer terminal.Close()
	now, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err != nil || isRaw(now) {
		return ""
	}
	return modesText(now)
}

func modesText(modes *unix.Termios) string {
	var b bytes.Buffer
	binary.Write(&b, binary.NativeEndian, modes) // cannot fail: its size is fixed
	return hex.EncodeToString(b.Bytes())
}

func modesOf(text string) (*unix.Termios, bool) {
	modes := new(unix.Termios)
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != binary.Size(modes) {
		return nil, false
	}
	return modes, binary.Read(bytes.NewReader(b), binary.NativeEndian, modes) == nil
}

// keepTerminal keeps what the controlling terminal is to be like again.
func keepTerminal(modes string) terminalKeeper {
	before, ok := modesOf(modes)
	if !ok {
		return terminalKeeper{}
	}
	terminal, err := openTerminalOfOurs()
	if err != nil {
		return terminalKeeper{}
	}
	return terminalKeeper{terminal, before}
}

func openTerminalOfOurs() (*os.File, error) {
	return os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0)
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
	// The terminal is not ours any more. It stops a background process that changes it, by SIGTTOU, unless that
	// signal is ignored.
	unix.IoctlSetTermios(int(k.terminal.Fd()), unix.TCSETS, k.before)
	k.terminal.WriteString(endOfScreen)
}

// isRaw reports whether keys neither make lines nor signals.
func isRaw(t *unix.Termios) bool { return t.Lflag&(unix.ISIG|unix.ICANON) == 0 }
