// Package machine adds to a page of package annotate what only the JVM knows: the bytecodes of the method, and the
// machine code that compilers made of it, with what each instruction belongs to.
//
// What you give is a JVM, live or in a core file; it is only read. A JVM may unload, compile and throw away code
// meanwhile: what was copied when a sample was taken stays, and names that cannot be read any more are left out.
package machine

import (
	"errors"
	"fmt"
	"strings"

	"goprof/annotate"
	"goprof/profile/naming"
	"goprof/vmstructs"
)

// ErrNoMethod: no loaded class has the method.
var ErrNoMethod = errors.New("no class that is loaded now has it")

// named is the name under which profiles have a method.
func named(m *vmstructs.Method) string { return naming.Method(m.Class, m.Name, m.File) }

// find lists the methods that have a name in profiles. The class is mostly a part of that name. Names of other
// languages than Java leave parts of the class out, not of the package.
func find(vm *vmstructs.VM, name string) ([]*vmstructs.Method, error) {
	fits := func(m *vmstructs.Method) bool { return named(m) == name && !m.Native && m.CodeSize > 0 }
	list, err := vm.FindMethods(func(class string) bool {
		rest, ok := strings.CutPrefix(name, naming.Method(class, "", ""))
		return ok && !strings.Contains(rest, ".")
	}, fits)
	if err != nil || len(list) > 0 {
		return list, err
	}
	return vm.FindMethods(func(class string) bool {
		dot := strings.LastIndexByte(class, '.')
		return dot > 0 && strings.HasPrefix(name, class[:dot+1])
	}, fits)
}

// mostOverloads bounds the methods of one name that are read.
const mostOverloads = 512

// AddBytecodes gives the page's method its bytecodes. Where several methods have its name, each gets the samples of the
// places that it has: a bytecode index with the line of that index. Samples of no place stay in rows of their own.
func AddBytecodes(vm *vmstructs.VM, p *annotate.Page) error {
	methods, err := find(vm, p.Method)
	if err != nil {
		return err
	}
	if len(methods) == 0 {
		return ErrNoMethod
	}
	if len(methods) > mostOverloads {
		p.Notes = append(p.Notes, fmt.Sprintf("%d methods have this name, and %d of them were read", len(methods),
			mostOverloads))
		methods = methods[:mostOverloads]
	}
	type place struct{ bci, line int32 }
	left := map[place]*annotate.Row{}
	lines := map[int32]*annotate.Line{}
	for i := range p.Methods {
		for k := range p.Methods[i].Rows {
			r := &p.Methods[i].Rows[k]
			left[place{r.BCI, r.Line}] = r
		}
		for k := range p.Methods[i].Lines {
			lines[p.Methods[i].Lines[k].Line] = &p.Methods[i].Lines[k]
		}
	}
	somewhere := left[place{-1, 0}] // compiled code of which no place is known
	delete(left, place{-1, 0})
	var made, silent []annotate.Method
	for _, m := range methods {
		list, err := vm.Listing(m)
		if err != nil {
			return err
		}
		body := annotate.Method{Signature: m.Signature, Rows: make([]annotate.Row, len(list)), Lines: []annotate.Line{}}
		took, last := false, int32(-1)
		for i, b := range list {
			row := annotate.Row{BCI: b.BCI, Line: b.Line, Bytecode: b.Text}
			if seen := left[place{b.BCI, b.Line}]; seen != nil {
				row.Count, took = seen.Count, true
				delete(left, place{b.BCI, b.Line})
			}
			body.Rows[i] = row
			if l := lines[b.Line]; l != nil && b.Line != last {
				body.Lines = append(body.Lines, *l)
				delete(lines, b.Line)
				if alone := (place{-1, b.Line}); left[alone] != nil { // a pprof file has lines alone
					delete(left, alone)
					took = true
				}
			}
			last = b.Line
		}
		if took {
			made = append(made, body)
		} else {
			silent = append(silent, body)
		}
	}
	if len(made) == 0 {
		made, silent = silent[:1], silent[1:]
	}
	if somewhere != nil { // in which of several, nobody knows
		made[0].Rows = append([]annotate.Row{*somewhere}, made[0].Rows...)
		made[0].Lines = append([]annotate.Line{{Count: somewhere.Count}}, made[0].Lines...)
	}
	if len(silent) > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("methods of this name without samples: %d", len(silent)))
	}
	if rest := leftOver(p, func(r *annotate.Row) bool { return left[place{r.BCI, r.Line}] != nil }); len(rest.Rows) > 0 {
		var n int64
		for i := range rest.Rows {
			n += rest.Rows[i].Self
		}
		p.Notes = append(p.Notes, fmt.Sprintf("places that the method does not have now are shown last: it is another "+
			"version, or another method of this name (%d of %d on top)", n, p.Self))
		made = append(made, rest)
	}
	p.Methods = made
	return nil
}

// leftOver is what remains of the page's rows, with their lines.
func leftOver(p *annotate.Page, left func(*annotate.Row) bool) (rest annotate.Method) {
	at := map[int32]int{}
	for i := range p.Methods {
		for k := range p.Methods[i].Rows {
			r := &p.Methods[i].Rows[k]
			if !left(r) {
				continue
			}
			rest.Rows = append(rest.Rows, *r)
			if _, known := at[r.Line]; !known {
				at[r.Line] = len(rest.Lines)
				rest.Lines = append(rest.Lines, annotate.Line{Line: r.Line})
			}
			rest.Lines[at[r.Line]].Sum(&r.Count)
		}
	}
	return rest
}
