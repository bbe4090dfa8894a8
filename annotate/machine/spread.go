package machine

import (
	"fmt"

	"goprof/annotate"
)

// codePlace is a bytecode index with its line. The index is -1 for samples with only a line. Samples in compiled code
// without a nearby record have no line, either.
type codePlace struct{ bci, line int32 }

// owner is the body that has a place.
type owner struct {
	body     int // or several: more than one body has the place
	bytecode string
}

const several = -1

// owners returns the body of each place. Overloads may share places: constructors hold copies of the same field
// initializers, and methods without line tables differ by the index alone.
func owners(bodies []annotate.Method) map[codePlace]owner {
	of := map[codePlace]owner{}
	add := func(at codePlace, is owner) {
		if was, known := of[at]; known && was.body != is.body {
			is.body = several
			if was.bytecode != is.bytecode {
				is.bytecode = ""
			}
		}
		of[at] = is
	}
	for i := range bodies {
		add(codePlace{-1, 0}, owner{body: i})
		for _, r := range bodies[i].Rows {
			add(codePlace{-1, r.Line}, owner{body: i})
			add(codePlace{r.BCI, r.Line}, owner{i, r.Bytecode})
		}
	}
	return of
}

// spread adds the bodies to the page. A body gets the samples of the places that no other body has. Samples of shared
// places, and of places that no body has, come last, in groups of their own.
func spread(p *annotate.Page, bodies []annotate.Method) {
	own, shared, rest := map[codePlace]annotate.Count{}, annotate.Method{}, annotate.Method{}
	took := make([]bool, len(bodies))
	of := owners(bodies)
	for i := range p.Methods {
		for _, r := range p.Methods[i].Rows {
			switch is, known := of[codePlace{r.BCI, r.Line}]; {
			case !known:
				rest.Rows = append(rest.Rows, r)
			case is.body == several:
				r.Bytecode = is.bytecode
				shared.Rows = append(shared.Rows, r)
			default:
				own[codePlace{r.BCI, r.Line}], took[is.body] = r.Count, true
			}
		}
	}
	lines := wholeLines(p)
	var made []annotate.Method
	for i := range bodies {
		if took[i] {
			made = append(made, filled(bodies[i], func(at codePlace) annotate.Count {
				if of[at].body != i {
					return annotate.Count{}
				}
				return own[at]
			}))
		}
	}
	if n := len(bodies) - len(made); n > 0 && len(bodies) > 1 {
		p.Notes = append(p.Notes, fmt.Sprintf("methods of this name without samples of their own: %d", n))
	}
	if len(made) == 0 && len(shared.Rows) == 0 {
		made = append(made, bodies[0])
	}
	if len(shared.Rows) > 0 {
		shared.Note = "which overload is not known: several have these places"
		p.Notes = append(p.Notes, "places that several methods of this name have: which of them ran is not known"+
			onTop(p, shared.Rows))
		made = append(made, shared)
	}
	if len(rest.Rows) > 0 {
		rest.Note = "places that the method does not have now"
		p.Notes = append(p.Notes, "places that the method does not have now are shown last: it is another version, or "+
			"another method of this name"+onTop(p, rest.Rows))
		made = append(made, rest)
	}
	for i := range made {
		made[i].Lines = lines.of(made[i].Rows)
	}
	p.Methods = made
}

// onTop returns how many of the method's own samples the rows have, as text.
func onTop(p *annotate.Page, rows []annotate.Row) string {
	var n int64
	for i := range rows {
		n += rows[i].Self
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d of %d on top)", n, p.Self)
}

// filled returns a body with its samples. Samples of a line without an index stand before the line's first bytecode.
func filled(body annotate.Method, count func(codePlace) annotate.Count) annotate.Method {
	var rows []annotate.Row
	begun := map[int32]bool{}
	begin := func(line int32) {
		if c := count(codePlace{-1, line}); !begun[line] && c != (annotate.Count{}) {
			rows = append(rows, annotate.Row{BCI: -1, Line: line, Count: c})
		}
		begun[line] = true
	}
	begin(0)
	for _, r := range body.Rows {
		begin(r.Line)
		r.Count = count(codePlace{r.BCI, r.Line})
		rows = append(rows, r)
	}
	body.Rows = rows
	return body
}

// whole holds the lines of a page with their counts, and how many rows each has. A sample counts once for a line even
// if the method is on the stack twice, so the sum of the rows may be larger.
type whole map[int32]*wholeLine

type wholeLine struct {
	annotate.Count
	rows int
}

func wholeLines(p *annotate.Page) whole {
	w := whole{}
	for i := range p.Methods {
		for _, l := range p.Methods[i].Lines {
			w[l.Line] = &wholeLine{Count: l.Count}
		}
		for _, r := range p.Methods[i].Rows {
			if l := w[r.Line]; l != nil {
				l.rows++
			}
		}
	}
	return w
}

// of returns the lines of rows that have samples. If all rows of a line are here, the line keeps its count.
func (w whole) of(rows []annotate.Row) []annotate.Line {
	lines := []annotate.Line{}
	at, met := map[int32]int{}, map[int32]int{}
	for i := range rows {
		r := &rows[i]
		if r.Count == (annotate.Count{}) {
			continue
		}
		if met[r.Line]++; met[r.Line] == 1 {
			at[r.Line] = len(lines)
			lines = append(lines, annotate.Line{Line: r.Line})
		}
		lines[at[r.Line]].Sum(&r.Count)
	}
	for i := range lines {
		if l := &lines[i]; w[l.Line] != nil && w[l.Line].rows == met[l.Line] {
			l.Count = w[l.Line].Count
		}
	}
	return lines
}
