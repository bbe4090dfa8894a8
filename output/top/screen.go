package top

import "strings"

// Style is how a piece of text is highlighted.
type Style uint8

const (
	Plain Style = iota
	Bold
	Faint
	Title    // headings of tables
	Selected // the thread that Enter looks at
	Hot      // a large consumer
)

// Palette is the set of styles that a terminal can show.
type Palette uint8

const (
	Colours  Palette = iota
	NoColour         // bold and reverse only (NO_COLOR)
)

// sgr are the sequences that begin a style (ECMA-48, SGR), with and without colours.
var sgr = [...][2]string{
	Plain: {"", ""}, Bold: {"\x1b[1m", "\x1b[1m"}, Faint: {"\x1b[2m", "\x1b[2m"},
	Title: {"\x1b[1;36m", "\x1b[1m"}, Selected: {"\x1b[7m", "\x1b[7m"}, Hot: {"\x1b[1;33m", "\x1b[1m"},
}

const sgrEnd = "\x1b[0m"

// Span is text of one style. It is clean: nothing in it moves a cursor.
type Span struct {
	Text  string
	Style Style
}

type Line []Span

// Text returns the line without styles.
func (l Line) Text() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(s.Text)
	}
	return b.String()
}

func (l Line) cut(columns int) Line {
	for i, s := range l {
		w := width(s.Text)
		if w > columns {
			return append(l[:i:i], Span{strings.TrimRight(fit(s.Text, columns), " "), s.Style})
		}
		columns -= w
	}
	return l
}

// Render returns the text of each line with the sequences of its styles.
func Render(lines []Line, palette Palette) []string {
	texts := make([]string, len(lines))
	for i, line := range lines {
		var b strings.Builder
		for _, s := range line {
			on := sgr[s.Style][palette]
			b.WriteString(on)
			b.WriteString(s.Text)
			if on != "" {
				b.WriteString(sgrEnd)
			}
		}
		texts[i] = b.String()
	}
	return texts
}
