package annotate

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"goprof/output"
	"goprof/profile"
)

// JSON writes a page as JSON.
func (p *Page) JSON(to io.Writer) error {
	for i := range p.Code {
		for k := range p.Code[i].Instructions {
			if in := &p.Code[i].Instructions[k]; len(in.Place) > 0 {
				in.How = in.Sure.String()
			}
		}
	}
	return output.WriteJSON(to, p)
}

// around is the number of rows without samples that are shown next to a row with samples.
const around = 3

// Text writes a page as text. all shows all rows.
func (p *Page) Text(to io.Writer, all bool) error {
	w := &writer{Writer: bufio.NewWriter(to), page: p, all: all}
	w.head()
	for i := range p.Methods {
		w.method(&p.Methods[i])
	}
	for i := range p.Code {
		w.code(&p.Code[i])
	}
	w.foot()
	return w.Flush()
}

type writer struct {
	*bufio.Writer
	page                   *Page
	all                    bool
	likely, guessed, wider bool // which signs were shown, and whether rows were left out
}

func (w *writer) head() {
	p := w.page
	fmt.Fprintf(w, "%s", output.CleanName(p.Method))
	if p.File != "" {
		fmt.Fprintf(w, "   %s", output.Printable(p.File))
	}
	mode := ""
	if p.Mode != "" {
		mode = ", " + p.Mode
	}
	fmt.Fprintf(w, "\n%s%s: %s in its own code, %s with what it calls\n", output.Amount(p.Weight, p.All), mode,
		w.share(p.Self), w.share(p.Total))
	for _, in := range p.Inside {
		switch share := w.share(in.Self); {
		case in.Self == 0:
		case in.Name == p.Method:
			fmt.Fprintf(w, "%10s  in machine code of its own\n", share)
		case in.Name == "":
			fmt.Fprintf(w, "%10s  interpreted\n", share)
		default:
			fmt.Fprintf(w, "%10s  inlined into %s\n", share, output.CleanName(in.Name))
		}
	}
	for _, note := range p.Notes {
		fmt.Fprintf(w, "%s\n", output.Printable(note))
	}
}

func (w *writer) share(n int64) string { return output.Percent(n, w.page.All) }

// counts begins a row. The row gets a sign if at least half of its samples have an inferred place.
func (w *writer) counts(c *Count) {
	sign := " "
	switch {
	case c.Self > 0 && 2*c.Guessed >= c.Self:
		sign, w.guessed = "?", true
	case c.Self > 0 && 2*(c.Guessed+c.Likely) >= c.Self:
		sign, w.likely = "~", true
	}
	figure := func(n int64) string {
		if n == 0 {
			return strings.Repeat(" ", 18)
		}
		return fmt.Sprintf("%10s %7s", output.Figure(w.page.Weight, n), w.share(n))
	}
	fmt.Fprintf(w, "%s%s %s  ", figure(c.Self), sign, figure(c.Total))
}

// shown decides which rows are shown: those with samples, and some next to them.
func (w *writer) shown(n int, count func(int) *Count) []bool {
	show := make([]bool, n)
	for i := range show {
		if w.all {
			show[i] = true
		} else if c := count(i); c.Self > 0 || c.Total > 0 {
			for k := max(i-around, 0); k < min(i+around+1, n); k++ {
				show[k] = true
			}
		}
	}
	return show
}

// gap shows that rows are left out.
func (w *writer) gap() {
	w.wider = true
	fmt.Fprintf(w, "%40s...\n", "")
}

func (w *writer) method(m *Method) {
	w.WriteByte('\n')
	if m.Signature != "" {
		fmt.Fprintf(w, "%s%s\n", output.CleanName(w.page.Method), output.Printable(m.Signature))
	}
	if m.Note != "" {
		fmt.Fprintf(w, "%s\n", m.Note)
	}
	fmt.Fprintf(w, "%10s %7s  %10s %7s  %s\n", "self", "", "total", "", "line")
	counts := map[int32]*Count{}
	for i := range m.Lines {
		counts[m.Lines[i].Line] = &m.Lines[i].Count
	}
	show := w.shown(len(m.Rows), func(i int) *Count { return &m.Rows[i].Count })
	line, gap := int32(-1), false
	for i := range m.Rows {
		r := &m.Rows[i]
		if !show[i] {
			if !gap {
				w.gap()
			}
			gap, line = true, -1
			continue
		}
		if gap = false; r.Line != line {
			line = r.Line
			c := counts[line]
			if c == nil {
				c = &Count{}
			}
			w.counts(c)
			counts[line] = nil // figures stand only at the first row of a line
			w.WriteString(lineText(line, w.page.texts[line]))
		}
		if r.BCI < 0 { // the line above it has the number
			continue
		}
		w.counts(&r.Count)
		fmt.Fprintf(w, "        %s\n", bytecodeText(r))
	}
}

func lineText(line int32, source string) string {
	if line == 0 {
		return "line not known: the JVM has no record near it\n"
	}
	return strings.TrimRight(fmt.Sprintf("%5d  %s", line, output.Printable(source)), " ") + "\n"
}

func bytecodeText(r *Row) string {
	return strings.TrimRight(fmt.Sprintf("%5d: %s", r.BCI, output.Printable(r.Bytecode)), " ")
}

func (w *writer) code(c *Code) {
	osr := ""
	if c.OSR {
		osr = fmt.Sprintf(", for a loop that was running (OSR, entered at bci %d)", c.EntryBCI)
	}
	fmt.Fprintf(w, "\n%s code, tier %d, compile id %d%s: %d bytes at %#x\n", c.Compiler, c.Level, c.CompileID, osr, c.Size,
		c.Begin)
	if c.Method != w.page.Method {
		fmt.Fprintf(w, "of %s, into which it is inlined: only its samples are counted\n", output.CleanName(c.Method))
	} else if len(w.page.Methods) > 1 {
		fmt.Fprintf(w, "of %s%s\n", output.CleanName(w.page.Method), output.Printable(c.Signature))
	}
	fmt.Fprintf(w, "%s in it, %s with what it calls\n", w.share(c.Self), w.share(c.Total))
	fmt.Fprintf(w, "%10s %7s  %10s %7s  %s\n", "self", "", "total", "", " offset  instruction")
	show := w.shown(len(c.Instructions), func(i int) *Count { return &c.Instructions[i].Count })
	gap := false
	for i := range c.Instructions {
		in := &c.Instructions[i]
		if !show[i] {
			if !gap {
				w.gap()
			}
			gap = true
			continue
		}
		gap = false
		w.instruction(in)
	}
}

func (w *writer) instruction(in *Instruction) {
	w.counts(&Count{Self: in.Self, Total: in.Total})
	text := fmt.Sprintf("%#7x  %-40s", in.Offset, output.Printable(in.Text))
	if in.Note != "" {
		text += "  ; " + output.Printable(in.Note)
	}
	if len(in.Place) > 0 {
		sign := ""
		switch in.Sure {
		case profile.Likely:
			sign, w.likely = "~ ", true
		case profile.Guessed:
			sign, w.guessed = "? ", true
		}
		text += "  " + sign + output.Printable(strings.Join(in.Place, " < "))
	}
	fmt.Fprintf(w, "%s\n", strings.TrimRight(text, " "))
}

// foot explains the signs and the unit.
func (w *writer) foot() {
	w.WriteByte('\n')
	if w.likely {
		w.WriteString("~  the line is inferred: of compiled code, the JVM records the lines of calls and safepoints alone\n")
	}
	if w.guessed {
		w.WriteString("?  a guess: which inlined method was running is not known, either\n")
	}
	if len(w.page.Code) > 0 {
		w.WriteString("self of an instruction: samples that found it next to run. " +
			"Mostly the instruction before it took the time.\n")
	}
	if w.wider {
		w.WriteString("...  rows without samples are left out: --all shows them\n")
	}
}
