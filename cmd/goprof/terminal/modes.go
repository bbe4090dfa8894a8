//go:build linux

package terminal

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"os"

	"golang.org/x/sys/unix"
)

// A killed goprof, or one that ends by a panic, leaves the terminal in the modes of its screen: no echo, no lines, no
// Ctrl-C. The watchdog outlives goprof, and restores the modes.

// Modes returns the modes of the controlling terminal as text, for Keep. goprof reads them before it draws, because the
// watchdog may start later. Modes returns "" if there is no terminal.
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
	binary.Write(&b, binary.NativeEndian, modes) // cannot fail, because the size of modes is fixed
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

// Keep stores the modes that the controlling terminal is to have again. restore sets them if the terminal still has the
// modes of goprof's screen. A shell's line editor may have changed the modes since. It leaves Ctrl-C on, and restore
// does nothing then.
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
		// goprof no longer owns the terminal. The kernel stops a background process that changes its modes by SIGTTOU,
		// unless the process ignores that signal.
		unix.IoctlSetTermios(int(terminal.Fd()), unix.TCSETS, before)
		terminal.WriteString(Leave)
	}
}

func openOurs() (*os.File, error) {
	return os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0)
}

// isRaw reports whether the terminal passes keys on as they are, without lines and signals.
func isRaw(t *unix.Termios) bool { return t.Lflag&(unix.ISIG|unix.ICANON) == 0 }
