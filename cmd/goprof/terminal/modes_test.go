//go:build linux

package terminal

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestTerminalModes: the watchdog makes of a terminal what goprof has noted of it, although the screen has changed
// the terminal before the watchdog begins. The watchdog believes no other text.
func TestTerminalModes(t *testing.T) {
	want := unix.Termios{Iflag: 1, Oflag: 2, Cflag: 3, Lflag: unix.ICANON | unix.ISIG, Line: 4, Ispeed: 5, Ospeed: 6}
	want.Cc[3] = 7
	got, ok := modesOf(modesText(&want))
	if !ok || *got != want {
		t.Errorf("%v %+v, not %+v", ok, got, want)
	}
	for _, text := range []string{"", "x", "00", modesText(&want) + "00"} {
		if _, ok := modesOf(text); ok {
			t.Errorf("%q is believed", text)
		}
	}
}
