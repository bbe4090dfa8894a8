package top

import (
	"fmt"
	"strings"

	"goprof/output"
	"goprof/profile"
)

// The size of a screen alone decides what fits on it. Parts that are also shown elsewhere are left out first, names
// last.

const (
	// stateWidth is the width of the longest state, without what the thread waits for.
	stateWidth = 9
	// tidFrom, allocFrom and frameFrom are the least widths of a table with these columns.
	tidFrom, allocFrom, frameFrom = 60, 48, 72
	// nameMost bounds the width of threads' names if another column follows.
	nameMost = 40
	// bothFrom is the least number of lines for showing threads and methods together. methodsPart is the methods' part of
	// these lines.
	bothFrom, methodsPart = 12, 3
	// much is the least share of a CPU, or of the samples, that is highlighted.
	much = 0.5
)

// Draw draws a screen of at most rows lines. No line is wider than the screen.
func (m *Model) Draw(columns, rows int) []Line {
	columns, rows = max(columns, 1), max(rows, 1)
	var lines []Line
	switch {
	case m.help:
		lines = helpLines()
	case m.shown == nil:
		lines = []Line{{{"goprof top: the first reading is coming ...", Plain}}}
	default:
		lines = m.head(columns, rows)
		if body := rows - len(lines) - 1; m.stack != nil {
			lines = append(lines, m.drawStack(columns, body)...)
		} else {
			lines = append(lines, m.tables(columns, body)...)
		}
	}
	if len(lines) > rows-1 {
		lines = lines[:rows-1]
	}
	for len(lines) < rows-1 {
		lines = append(lines, nil)
	}
	lines = append(lines, m.foot())
	for i := range lines {
		lines[i] = lines[i].cut(columns)
	}
	return lines
}

// head returns the lines about the whole process. A low screen has fewer of them.
func (m *Model) head(columns, rows int) []Line {
	r := m.shown
	who := fmt.Sprintf("%d %s", r.PID, clean(r.Main))
	title := Line{{"goprof top  ", Title}, {who, Bold}}
	if m.frozen {
		title = append(title, Span{"  FROZEN", Hot})
	}
	if m.recording != "" {
		title = append(title, Span{"  RECORDING " + m.recording, Hot})
	}
	about := fmt.Sprintf("  %s %s  up %s", clean(r.JVM), clean(r.Collector), output.Uptime(r.Uptime))
	title = append(title, Span{about, Plain})
	lines := []Line{title, {{usage(r, columns < frameFrom), Plain}}}
	if rows >= bothFrom {
		lines = append(lines, Line{{collector(r), Plain}})
		if len(r.Pools) > 0 {
			lines = append(lines, Line{{poolsLine(r.Pools), Plain}})
		}
		lines = append(lines, Line{{cost(r), Faint}})
	}
	return lines
}

func usage(r *Reading, narrow bool) string {
	busy := 0
	for i := range r.Threads {
		if r.Threads[i].CPU >= 0.01 {
			busy++
		}
	}
	if narrow {
		return fmt.Sprintf("CPU %s%% of %d  %d threads, %d busy", percent(r.CPU), 100*r.CPUs, len(r.Threads), busy)
	}
	return fmt.Sprintf("CPU     %s%% of %d%%, in %s  %d threads, %d of them above 1%%", percent(r.CPU), 100*r.CPUs,
		short(r.Span), len(r.Threads), busy)
}

func collector(r *Reading) string {
	s := "heap    "
	if r.AllocKnown {
		s += bytesText(r.Alloc) + "/s allocated"
	} else {
		s += "allocation not known"
	}
	if r.GC.Counted {
		s += fmt.Sprintf(", %d collections", r.GC.Collections)
	}
	if !r.GC.Known {
		return s + ", CPU of the collector not known"
	}
	s += fmt.Sprintf(", collector %s%%", percent(r.GC.CPU))
	if r.CPU > 0.01 {
		s += fmt.Sprintf(" (%.0f%% of the CPU used)", 100*min(r.GC.CPU/r.CPU, 1))
	}
	return s
}

// cost returns the CPU time that goprof used, and how goprof disturbed the process.
func cost(r *Reading) string {
	s := fmt.Sprintf("goprof  %s%% of a CPU", percent(r.Own.CPU))
	if r.Own.Memory > 0 {
		s += ", " + bytesText(float64(r.Own.Memory)) + " of memory"
	}
	s += fmt.Sprintf("; %d pauses", r.Pauses.Count)
	if r.Pauses.Count > 0 {
		s += fmt.Sprintf(", p99 %s, longest %s", short(r.Pauses.P99), short(r.Pauses.Max))
	}
	return s + fmt.Sprintf(": a thread stood still for %.3f%% of the time", 100*r.Pauses.Held)
}

// foot returns the last line.
func (m *Model) foot() Line {
	switch {
	case m.typing:
		return Line{{"filter: ", Title}, {m.filter, Bold}, {"_", Plain}, {"  (Enter keeps it, Esc drops it)", Faint}}
	case m.message != "":
		return Line{{m.message, Bold}}
	case m.help:
		return Line{{"any key goes back", Faint}}
	case m.stack != nil:
		return Line{{"Esc back  space freeze  d dump  r record  ? help  q quit", Faint}}
	}
	line := Line{{"? help  q quit  c a n s sort  / filter  space freeze  Enter stack  d dump  r record", Faint}}
	if m.filter != "" {
		line = append(Line{{"filter: " + m.filter + "  ", Title}}, line...)
	}
	return line
}

// tables returns the lines of threads and methods for which there is room.
func (m *Model) tables(columns, rows int) []Line {
	show := m.pane
	if show == both && rows < bothFrom {
		show = threadsOnly
	}
	switch show {
	case threadsOnly:
		return m.threadTable(columns, rows)
	case methodsOnly:
		return m.methodTable(columns, rows)
	}
	methods := max(rows/methodsPart, 4)
	return append(m.threadTable(columns, rows-methods), m.methodTable(columns, methods)...)
}

// layout is the columns of a table of threads.
type layout struct {
	tid, alloc  bool
	name, frame int // their widths; frame 0: none
}

func layoutOf(columns int) layout {
	l := layout{tid: columns >= tidFrom, alloc: columns >= allocFrom}
	left := columns - 1 - 6 - 1 - stateWidth - 1 // for mark, CPU, state
	if l.tid {
		left -= 9
	}
	if l.alloc {
		left -= 7
	}
	l.name = left
	if columns >= frameFrom {
		l.name = min(max(left*2/5, 12), nameMost)
		l.frame = left - l.name - 1
	}
	l.name = max(l.name, 1)
	return l
}

func (m *Model) threadTable(columns, rows int) []Line {
	if rows < 1 {
		return nil
	}
	l := layoutOf(columns)
	lines := []Line{{{l.row(" ", "TID", "CPU%", "ALLOC/s", "STATE", m.threadHead(), "JAVA FRAME"), Title}}}
	m.visible = rows - 1
	at := m.at()
	m.scrolled = min(max(m.scrolled, at-m.visible+1), at, max(len(m.threads)-m.visible, 0))
	for i := m.scrolled; i < len(m.threads) && len(lines) < rows; i++ {
		lines = append(lines, m.threadLine(l, &m.threads[i], i == at))
	}
	for len(lines) < rows {
		lines = append(lines, nil)
	}
	return lines
}

// threadHead returns the heading of the column by which threads are sorted.
func (m *Model) threadHead() string {
	s := "THREAD by " + m.order.String()
	if m.reversed {
		s += " reversed"
	}
	if n := len(m.threads); m.shown != nil && n < len(m.shown.Threads) {
		s += fmt.Sprintf(" (%d)", n)
	}
	return s
}

func (m *Model) threadLine(l layout, t *Thread, selected bool) Line {
	alloc := "-"
	if t.AllocKnown {
		alloc = bytesText(t.Alloc)
	}
	mark, style := " ", Plain
	switch {
	case selected:
		mark, style = ">", Selected
	case t.CPU >= much:
		style = Hot
	case t.CPU < 0.0005:
		style = Faint
	}
	text := l.row(mark, fmt.Sprint(t.TID), percent(t.CPU), alloc, clean(t.State), clean(t.Name), clean(t.Frame))
	return Line{{text, style}}
}

func (l layout) row(mark, tid, cpu, alloc, state, name, frame string) string {
	var b strings.Builder
	b.WriteString(mark)
	if l.tid {
		fmt.Fprintf(&b, "%8s ", tid)
	}
	fmt.Fprintf(&b, "%6s ", cpu)
	if l.alloc {
		fmt.Fprintf(&b, "%7s", alloc)
	}
	b.WriteString(" " + fit(state, stateWidth) + " " + fit(name, l.name))
	if l.frame > 0 {
		b.WriteString(" " + fitEnd(frame, l.frame))
	}
	return strings.TrimRight(b.String(), " ")
}

func (m *Model) methodTable(columns, rows int) []Line {
	if rows < 1 {
		return nil
	}
	by := "self"
	if m.byTotal {
		by = "total"
	}
	head := fmt.Sprintf("  SELF%%  TOTAL%%  METHOD by %s, %d samples of the last %s", by, m.shown.Samples,
		short(m.shown.Window))
	lines := []Line{{{head, Title}}}
	if len(m.methods) == 0 && rows > 1 {
		lines = append(lines, Line{{"                 none: no thread used CPU time", Faint}})
	}
	for i := 0; i < len(m.methods) && len(lines) < rows; i++ {
		c, style := &m.methods[i], Plain
		if c.Self >= much {
			style = Hot
		}
		lines = append(lines, Line{{fmt.Sprintf("%7s %7s  %s", percent(c.Self), percent(c.Total),
			strings.TrimRight(fitEnd(clean(c.Name), max(columns-17, 1)), " ")), style}})
	}
	for len(lines) < rows {
		lines = append(lines, nil)
	}
	return lines
}

func (m *Model) drawStack(columns, rows int) []Line {
	s := m.stack
	name := ""
	for i := range m.shown.Threads {
		if t := &m.shown.Threads[i]; t.TID == s.TID {
			name = clean(t.Name)
		}
	}
	title := Line{{fmt.Sprintf("stack of \"%s\" tid=%d", name, s.TID), Title}}
	if s.State != "" {
		title = append(title, Span{"  " + clean(s.State), Bold})
	}
	lines := []Line{title}
	switch {
	case s.Coming:
		return append(lines, Line{{"  is coming ...", Faint}})
	case s.Err != "":
		return append(lines, Line{{"  none: " + clean(s.Err), Plain}})
	}
	m.visible = rows - 1
	m.stackFrom = min(m.stackFrom, max(len(s.Frames)-m.visible, 0))
	for i := m.stackFrom; i < len(s.Frames) && len(lines) < rows; i++ {
		lines = append(lines, frameLine(&s.Frames[i], columns))
	}
	return lines
}

func frameLine(f *profile.Frame, columns int) Line {
	name, where := "", f.Kind.String()
	if f.Func != nil {
		name = clean(f.Func.Name)
		if f.Kind.Java() && f.Line > 0 && f.Func.File != "" {
			where = fmt.Sprintf("%s:%d", clean(f.Func.File), f.Line)
		}
	}
	style := Plain
	if !f.Kind.Java() {
		style = Faint
	}
	if columns < allocFrom {
		return Line{{"  " + fitEnd(name, columns-2), style}}
	}
	const room = 26
	return Line{{"  " + fitEnd(name, columns-room-3) + " " + fit(where, room), style}}
}

// helpLines explain keys and columns.
func helpLines() []Line {
	text := []string{
		"keys",
		"  c a n s      sort threads by CPU, allocation, name, state; once more: the other way round",
		"  /            show only threads and methods with this in their names; Esc shows all again",
		"  space        freeze the screen; once more: go on",
		"  Enter        the stack of the selected thread (up, down, page up, page down, home, end)",
		"  t            methods by total, or by self",
		"  tab, m       threads and methods, threads alone, methods alone",
		"  d            write a dump of all threads to a file",
		"  r            record into a file; once more: end the recording",
		"  q            quit; Ctrl-Z suspends",
		"columns",
		"  CPU%         of one CPU: 100 is one all the time",
		"  ALLOC/s      bytes in the heap a second; - is not known",
		"  JAVA FRAME   the topmost Java method when the thread was last seen",
		"  SELF% TOTAL% of the samples of CPU time, that ran in it, or had it on the stack",
	}
	var lines []Line
	for _, t := range text {
		style := Plain
		if !strings.HasPrefix(t, " ") {
			style = Title
		}
		lines = append(lines, Line{{t, style}})
	}
	return lines
}
