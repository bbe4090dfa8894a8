//go:build linux

package terminal

import (
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// StatusLine is a line at the bottom of a terminal that is drawn again. Other output appears above it.
type StatusLine struct {
	to       io.Writer
	terminal *os.File // nil if to is no terminal, or one that cannot erase
	mu       sync.Mutex
	drawn    bool
}

// NewStatusLine makes the line. It is never shown where other output goes to what is no terminal, or to one that cannot
// erase.
func NewStatusLine(to io.Writer) *StatusLine {
	l := &StatusLine{to: to}
	if file, ok := to.(*os.File); ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb" {
		l.terminal = file
	}
	return l
}

// Shown reports whether the line would be seen.
func (l *StatusLine) Shown() bool { return l.terminal != nil }

// Columns returns how many columns the line has. The last one of the terminal stays empty.
func (l *StatusLine) Columns() int {
	if l.Shown() {
		if width, _, err := term.GetSize(int(l.terminal.Fd())); err == nil && width > 0 {
			return width - 1
		}
	}
	return 79
}

// eraseLine is carriage return and EL, erase in line (ECMA-48).
const eraseLine = "\r\x1b[K"

// Draw shows text, cut to the terminal's width. If the line wrapped, only its end could be erased.
func (l *StatusLine) Draw(text string) {
	if !l.Shown() {
		return
	}
	if width := l.Columns(); len(text) > width {
		text = strings.ToValidUTF8(text[:width], "")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	io.WriteString(l.to, eraseLine+text)
	l.drawn = true
}

// Wipe leaves the terminal as if there had been no line.
func (l *StatusLine) Wipe() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
}

func (l *StatusLine) erase() {
	if l.drawn {
		io.WriteString(l.to, eraseLine)
		l.drawn = false
	}
}

// Write writes lines of text in the status line's place. The next draw shows the status line again.
func (l *StatusLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	return l.to.Write(p)
}
