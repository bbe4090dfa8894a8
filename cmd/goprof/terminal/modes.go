//go:build linux

package terminal

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"os"

	"golang.org/x/sys/unix"
)

// A goprof that is killed, or ends by a panic, leaves the terminal as its screen needs it: no echo, no lines, no
// Ctrl-C. The watchdog outlives goprof, and puts that right.

// Modes returns the modes of the controlling terminal as text, for Keep. goprof notes them before it
// draws: the watchdog may begin after that. They are empty if there is no terminal.
func Modes() string {
	terminal, err := openOurs()
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
	binary.Write(&b, binary.NativeEndian, modes) // cannot fail: the size of modes is fixed
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

// Keep notes the modes that the controlling terminal is to have again. restore puts the terminal right, if goprof has
// left it as its screen needs it. A shell's own line editor may have changed it before. It leaves Ctrl-C on: then
// restore does nothing.
func Keep(modes string) (restore func()) {
	before, ok := modesOf(modes)
	if !ok {
		return func() {}
	}
	terminal, err := openOurs()
	if err != nil {
		return func() {}
	}
	return func() {
		defer terminal.Close()
		now, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
		if err != nil || !isRaw(now) {
			return
		}
		// The terminal is not ours any more. It stops a background process that changes it by SIGTTOU, unless the process
		// ignores that signal.
		unix.IoctlSetTermios(int(terminal.Fd()), unix.TCSETS, before)
		terminal.WriteString(Leave)
	}
}

func openOurs() (*os.File, error) {
	return os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0)
}

// isRaw reports whether the terminal makes neither lines nor signals of keys.
func isRaw(t *unix.Termios) bool { return t.Lflag&(unix.ISIG|unix.ICANON) == 0 }
