//go:build linux

package main

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// screen is what a terminal shows. It emulates the sequences that xterm and its like know (ECMA-48 and
// invisible-island.net/xterm/ctlseqs), as far as programs draw with them. Unknown sequences are kept in odd, and the
// test that looks there fails.
type screen struct {
	columns, rows int
	cells         [][]rune // of the screen that is shown; 0 is the second half of a wide rune
	main          [][]rune // of the screen that is not shown
	x, y          int
	wraps         bool // the last column was written, so the next rune goes to the next line
	top, bottom   int  // the scroll region
	alternate     bool
	hidden        bool // the cursor is hidden
	last          rune
	styled        int             // the number of SGR sequences, without plain resets
	coloured      int             // how many of them set a colour
	keyboard      map[string]bool // the changes of the keyboard's modes, by the sequence that undoes each
	odd           []string
	rest          []byte // the beginning of a sequence whose end has not come yet
}

func newScreen(columns, rows int) *screen {
	s := &screen{keyboard: map[string]bool{}}
	s.resize(columns, rows)
	s.main = blank(columns, rows)
	return s
}

func blank(columns, rows int) [][]rune {
	cells := make([][]rune, rows)
	for i := range cells {
		cells[i] = []rune(strings.Repeat(" ", columns))
	}
	return cells
}

// resize keeps the part that fits.
func (s *screen) resize(columns, rows int) {
	old := s.cells
	s.columns, s.rows, s.cells = columns, rows, blank(columns, rows)
	s.main = blank(columns, rows)
	for y := 0; y < min(rows, len(old)); y++ {
		copy(s.cells[y], old[y])
	}
	s.x, s.y, s.top, s.bottom, s.wraps = min(s.x, columns-1), min(s.y, rows-1), 0, rows-1, false
}

// text is the text on the screen, line by line, without spaces at the ends.
func (s *screen) text() string {
	var b strings.Builder
	for _, line := range s.cells {
		for _, r := range line {
			if r != 0 {
				b.WriteRune(r)
			}
		}
		b.WriteByte('\n')
	}
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// write takes output of a program.
func (s *screen) write(b []byte) {
	b = append(s.rest, b...)
	for len(b) > 0 {
		n := s.one(b)
		if n == 0 {
			break
		}
		b = b[n:]
	}
	s.rest = append([]byte(nil), b...)
}

// one takes a rune or a sequence. It returns its length, or 0 if its end has not come.
func (s *screen) one(b []byte) int {
	switch b[0] {
	case 0x1b:
		return s.escape(b)
	case '\r':
		s.x, s.wraps = 0, false
	case '\n':
		s.lineFeed()
	case '\b':
		s.x, s.wraps = max(s.x-1, 0), false
	case '\t':
		s.x = min((s.x/8+1)*8, s.columns-1)
	case 7:
	default:
		if b[0] < ' ' {
			s.odd = append(s.odd, strconv.Quote(string(b[:1])))
			return 1
		}
		if !utf8.FullRune(b) {
			return 0
		}
		r, n := utf8.DecodeRune(b)
		s.put(r)
		return n
	}
	return 1
}

func (s *screen) put(r rune) {
	w := 1
	if r >= 0x1100 && (r <= 0x115f || r >= 0x2e80 && r <= 0xd7a3 || r >= 0xf900 && r <= 0xfaff ||
		r >= 0xff00 && r <= 0xff60 || r >= 0x1f300 && r <= 0x1faff) {
		w = min(2, s.columns)
	}
	if s.wraps || s.x+w > s.columns {
		s.x, s.wraps = 0, false
		s.lineFeed()
	}
	s.cells[s.y][s.x] = r
	if w == 2 {
		s.cells[s.y][s.x+1] = 0
	}
	s.last = r
	if s.x += w; s.x >= s.columns {
		s.x, s.wraps = s.columns-1, true
	}
}

func (s *screen) lineFeed() {
	if s.y == s.bottom {
		s.scroll(s.top, s.bottom, 1)
	} else {
		s.y = min(s.y+1, s.rows-1)
	}
}

// scroll moves lines up by n, or down if n is negative. A program that does not know of a new size yet may name a
// region that does not exist.
func (s *screen) scroll(top, bottom, n int) {
	if top < 0 || top > bottom || bottom >= s.rows {
		return
	}
	for ; n > 0; n-- {
		copy(s.cells[top:bottom], s.cells[top+1:bottom+1])
		s.cells[bottom] = []rune(strings.Repeat(" ", s.columns))
	}
	for ; n < 0; n++ {
		copy(s.cells[top+1:bottom+1], s.cells[top:bottom])
		s.cells[top] = []rune(strings.Repeat(" ", s.columns))
	}
}

// escape takes a sequence.
func (s *screen) escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '[':
		for i := 2; i < len(b); i++ {
			if b[i] >= 0x40 && b[i] <= 0x7e {
				s.control(string(b[2:i]), b[i])
				return i + 1
			}
		}
		return 0
	case ']', 'P', '_': // these go up to ST or BEL
		for i := 2; i < len(b); i++ {
			if b[i] == 7 {
				return i + 1
			} else if b[i] == '\\' && b[i-1] == 0x1b {
				return i + 1
			}
		}
		return 0
	case '7', '8', '=', '>':
		return 2
	case '(', ')':
		return min(3, len(b))
	case 'M':
		if s.y == s.top {
			s.scroll(s.top, s.bottom, -1)
		} else {
			s.y = max(s.y-1, 0)
		}
		return 2
	}
	s.odd = append(s.odd, strconv.Quote(string(b[:2])))
	return 2
}

// control is a control sequence (CSI).
func (s *screen) control(args string, final byte) {
	private := ""
	if args != "" && strings.ContainsRune("<=>?", rune(args[0])) {
		private, args = args[:1], args[1:]
	}
	if private != "" || strings.ContainsAny(args, " !\"$'") {
		s.mode(private, args, final)
		return
	}
	arg := func(i, otherwise int) int {
		parts := strings.Split(args, ";")
		if i < len(parts) {
			if n, err := strconv.Atoi(parts[i]); err == nil && n > 0 {
				return n
			}
		}
		return otherwise
	}
	n, line := arg(0, 1), s.cells[s.y]
	if final != 'b' && final != 'm' {
		s.wraps = false
	}
	switch final {
	case 'A':
		s.y = max(s.y-n, 0)
	case 'B', 'e':
		s.y = min(s.y+n, s.rows-1)
	case 'C', 'a':
		s.x = min(s.x+n, s.columns-1)
	case 'D':
		s.x = max(s.x-n, 0)
	case 'E':
		s.x, s.y = 0, min(s.y+n, s.rows-1)
	case 'F':
		s.x, s.y = 0, max(s.y-n, 0)
	case 'G', '`':
		s.x = min(n, s.columns) - 1
	case 'd':
		s.y = min(n, s.rows) - 1
	case 'H', 'f':
		s.y, s.x = min(n, s.rows)-1, min(arg(1, 1), s.columns)-1
	case 'I':
		for range n {
			s.x = min((s.x/8+1)*8, s.columns-1)
		}
	case 'Z':
		for range n {
			s.x = max((s.x-1)/8*8, 0)
		}
	case 'J':
		s.erase(arg(0, 0))
	case 'K':
		from, to := s.x, s.columns
		switch arg(0, 0) {
		case 1:
			from, to = 0, s.x+1
		case 2:
			from = 0
		}
		clearCells(line[from:to])
	case 'X':
		clearCells(line[s.x:min(s.x+n, s.columns)])
	case 'P':
		n = min(n, s.columns-s.x)
		copy(line[s.x:], line[s.x+n:])
		clearCells(line[s.columns-n:])
	case '@':
		n = min(n, s.columns-s.x)
		copy(line[s.x+n:], line[s.x:])
		clearCells(line[s.x : s.x+n])
	case 'L':
		s.scroll(s.y, s.bottom, -min(n, s.rows))
	case 'M':
		s.scroll(s.y, s.bottom, min(n, s.rows))
	case 'S':
		s.scroll(s.top, s.bottom, min(n, s.rows))
	case 'T':
		s.scroll(s.top, s.bottom, -min(n, s.rows))
	case 'b':
		for range n {
			s.put(s.last)
		}
	case 'r':
		s.top, s.bottom = min(n, s.rows)-1, min(arg(1, s.rows), s.rows)-1
		s.x, s.y = 0, 0
	case 'm':
		s.style(args)
	case 'h', 'l', 'n', 'c', 't', 's', 'u', 'g':
	default:
		s.odd = append(s.odd, "CSI "+args+string(final))
	}
}

// style counts sequences that make text stand out.
func (s *screen) style(args string) {
	for _, part := range strings.FieldsFunc(args, func(r rune) bool { return r == ';' }) {
		n, _ := strconv.Atoi(part)
		if n != 0 && n != 39 && n != 49 && n != 22 && n != 27 {
			s.styled++
		}
		if n >= 30 && n <= 38 || n >= 40 && n <= 48 || n >= 90 && n <= 107 {
			s.coloured++
		}
	}
}

func (s *screen) erase(what int) {
	line := s.cells[s.y]
	switch what {
	case 0:
		clearCells(line[s.x:])
		for _, l := range s.cells[s.y+1:] {
			clearCells(l)
		}
	case 1:
		clearCells(line[:s.x+1])
		for _, l := range s.cells[:s.y] {
			clearCells(l)
		}
	default:
		for _, l := range s.cells {
			clearCells(l)
		}
	}
}

func clearCells(cells []rune) {
	for i := range cells {
		cells[i] = ' '
	}
}

// mode is a private sequence.
func (s *screen) mode(private, args string, final byte) {
	on := final == 'h'
	switch { // modifyOtherKeys of xterm, and the stack of kitty's protocol
	case private == ">" && final == 'm' && args != "4":
		s.keyboard[">4m"] = true
	case private == ">" && final == 'u':
		s.keyboard["<1u"] = true
	case private == ">" && final == 'm', private == "<" && final == 'u':
		delete(s.keyboard, private+args+string(final))
	}
	if private != "?" || final != 'h' && final != 'l' {
		return // questions, and modes of the keyboard
	}
	for _, part := range strings.Split(args, ";") {
		switch part {
		case "1049", "47", "1047":
			if on != s.alternate {
				s.cells, s.main = s.main, s.cells
				s.alternate = on
			}
			if on {
				s.cells = blank(s.columns, s.rows)
			}
		case "25":
			s.hidden = !on
		case "2004":
			if s.keyboard["?2004l"] = on; !on {
				delete(s.keyboard, "?2004l")
			}
		}
	}
}

// TestScreenTooSmall: the emulator bears the output of a program that does not know of the terminal's new size.
func TestScreenTooSmall(t *testing.T) {
	for _, rows := range []int{1, 3} {
		s := newScreen(1, rows)
		s.write([]byte("\u540d\u524d\x1b[5;9r\n\n\n\x1b[2L\x1b[3M\x1bM\x1b[3;2r\x1b[9;9H\n\x1b[L\x1b[S\x1b[T\x1b[9X\x1b[9P"))
		if text := s.text(); strings.Count(text, "\n") != rows {
			t.Errorf("%d rows: %q", rows, text)
		}
	}
}
