//go:build linux

package terminal

import (
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// StatusLine is a line at the bottom of a terminal that is updated. Other output appears above it.
type StatusLine struct {
	to       io.Writer
	terminal *os.File // nil if to is not a terminal, or cannot erase lines
	mu       sync.Mutex
	drawn    bool
}

// NewStatusLine makes the line. It is never shown if to is not a terminal, or cannot erase lines.
func NewStatusLine(to io.Writer) *StatusLine {
	l := &StatusLine{to: to}
	if file, ok := to.(*os.File); ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb" {
		l.terminal = file
	}
	return l
}

// Shown reports whether the line is visible.
func (l *StatusLine) Shown() bool { return l.terminal != nil }

// Columns returns the width of the line. The last column of the terminal stays empty.
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

// Draw shows text, cut to the terminal's width. Only the end of a wrapped line could be erased.
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

// Wipe erases the line.
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

// Write writes lines of text in place of the status line. The next Draw shows the status line again.
func (l *StatusLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	return l.to.Write(p)
}
