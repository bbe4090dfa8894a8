//go:build linux

package main

import (
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// statusLine is a line at the bottom of a terminal that is drawn again. Other output appears above it.
type statusLine struct {
	to       io.Writer
	terminal *os.File // nil if to is no terminal, or one that cannot erase
	mu       sync.Mutex
	drawn    bool
}

func newStatusLine(to io.Writer) *statusLine {
	l := &statusLine{to: to}
	if file, ok := to.(*os.File); ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb" {
		l.terminal = file
	}
	return l
}

// shown reports whether the line would be seen.
func (l *statusLine) shown() bool { return l.terminal != nil }

// columns returns how many columns the line has. The last one of the terminal stays empty.
func (l *statusLine) columns() int {
	if l.shown() {
		if width, _, err := term.GetSize(int(l.terminal.Fd())); err == nil && width > 0 {
			return width - 1
		}
	}
	return 79
}

// eraseLine is carriage return and EL, erase in line (ECMA-48).
const eraseLine = "\r\x1b[K"

// draw shows text, cut to the terminal's width. If the line wrapped, only its end could be erased.
func (l *statusLine) draw(text string) {
	if !l.shown() {
		return
	}
	if width := l.columns(); len(text) > width {
		text = strings.ToValidUTF8(text[:width], "")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	io.WriteString(l.to, eraseLine+text)
	l.drawn = true
}

// wipe leaves the terminal as if there had been no line.
func (l *statusLine) wipe() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
}

func (l *statusLine) erase() {
	if l.drawn {
		io.WriteString(l.to, eraseLine)
		l.drawn = false
	}
}

// Write writes lines of text in the status line's place. The next draw shows the status line again.
func (l *statusLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	return l.to.Write(p)
}
