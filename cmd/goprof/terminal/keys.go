//go:build linux

package terminal

import (
	"os"
	"os/signal"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Key is a pressed key. Unknown keys have no name.
type Key struct {
	Name string // "up", "enter", "ctrl+c", "x"
	Text string // the text that it types
}

// Keys returns a channel of pressed keys. It is closed when the terminal is closed.
func (t *Terminal) Keys() <-chan Key { return t.keys }

// escapeTime is how long the rest of a key may take, in milliseconds. The key Esc is also the beginning of other keys.
const escapeTime = 50

// backgroundTime is how often readKeys checks whether this process is in the foreground again.
const backgroundTime = 200 * time.Millisecond

// readKeys reads until the other end of woken is closed. While goprof is in the background, it reads nothing: the keys
// belong to the shell then, and the kernel stops a process that reads them (SIGTTIN). The process may go to the
// background just before the read, so it ignores that signal. The read then fails with EIO (drivers/tty/tty_jobctrl.c,
// __tty_check_change).
func (t *Terminal) readKeys(woken *os.File) {
	defer close(t.keys)
	defer woken.Close()
	signal.Ignore(unix.SIGTTIN)
	var pending []byte
	buffer := make([]byte, 256)
	for {
		wait := -1
		if len(pending) > 0 {
			wait = escapeTime
		}
		ready := []unix.PollFd{{Fd: int32(t.in.Fd()), Events: unix.POLLIN}, {Fd: int32(woken.Fd())}}
		inBackground := !InForeground()
		if inBackground {
			wait, ready[0].Fd = int(backgroundTime.Milliseconds()), -1 // poll ignores it
		}
		n, err := unix.Poll(ready, wait)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil || ready[1].Revents != 0:
			return
		case inBackground:
			continue
		case n == 0:
			pending = t.press(pending, true)
			continue
		}
		n, err = unix.Read(int(t.in.Fd()), buffer)
		if err == unix.EINTR || err == unix.EAGAIN || err == unix.EIO && !InForeground() {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		pending = t.press(append(pending, buffer[:n]...), false)
	}
}

// press sends the keys in b, and returns an incomplete rest. all says that nothing more will come.
func (t *Terminal) press(b []byte, all bool) []byte {
	for len(b) > 0 {
		key, n := decode(b)
		if n == 0 {
			if !all {
				break
			}
			key, n = Key{}, len(b)
			if n == 1 && b[0] == escape {
				key.Name = "esc"
			}
		}
		t.keys <- key
		b = b[n:]
	}
	return b
}

const escape = 0x1b

// named are keys that type no letter.
var named = map[byte]string{'\r': "enter", '\n': "enter", '\t': "tab", ' ': "space", 0x7f: "backspace",
	'\b': "backspace"}

// sequences are the bytes of keys after Esc and one of "[" and "O".
var sequences = map[string]string{"A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end",
	"1~": "home", "4~": "end", "5~": "pgup", "6~": "pgdown", "7~": "home", "8~": "end"}

// decode returns the first key of b and its length, or 0 if the key is incomplete.
func decode(b []byte) (Key, int) {
	switch {
	case b[0] == escape:
		return decodeSequence(b)
	case b[0] == ' ':
		return Key{named[' '], " "}, 1
	case named[b[0]] != "":
		return Key{Name: named[b[0]]}, 1
	case b[0] < ' ':
		return Key{Name: "ctrl+" + string(b[0]|0x60)}, 1
	case !utf8.FullRune(b):
		return Key{}, 0
	}
	r, n := utf8.DecodeRune(b)
	if r == utf8.RuneError {
		return Key{}, n
	}
	return Key{string(r), string(r)}, n
}

// maxSequence limits a sequence. Terminals send shorter ones.
const maxSequence = 32

// decodeSequence is decode for a key that begins with Esc. The key has no name if goprof does not know it.
func decodeSequence(b []byte) (Key, int) {
	switch {
	case len(b) == 1:
		return Key{}, 0
	case b[1] == escape:
		return Key{Name: "esc"}, 1
	case b[1] == 'O' && len(b) == 2:
		return Key{}, 0
	case b[1] == 'O':
		return Key{Name: sequences[string(b[2:3])]}, 3
	case b[1] != '[': // a letter with Alt
		_, n := decode(b[1:])
		if n > 0 {
			n++
		}
		return Key{}, n
	}
	for i := 2; i < len(b) && i < maxSequence; i++ {
		if b[i] >= 0x40 && b[i] <= 0x7e {
			return Key{Name: sequences[string(b[2:i+1])]}, i + 1
		}
	}
	if len(b) >= maxSequence {
		return Key{}, maxSequence
	}
	return Key{}, 0
}
