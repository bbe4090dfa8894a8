// Package machine adds to a page of package annotate the facts that only the JVM knows: the method's bytecodes and its
// machine code. Each instruction is shown with its bytecode.
//
// The JVM may be live or in a core file. Package machine only reads it. A live JVM may unload, compile and discard code
// meanwhile. Code that was copied when a sample was taken is still shown. Names that can no longer be read are left
// out.
package machine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"goprof/annotate"
	"goprof/profile/naming"
	"goprof/vmstructs"
)

// ErrNoMethod says that no loaded class has the method.
var ErrNoMethod = errors.New("no class that is loaded now has it")

// named returns the method's name in profiles.
func named(m *vmstructs.Method) string { return naming.Method(m.Class, m.Name, m.File) }

// find returns the methods with that name in profiles. Usually the name contains the class. Names of other languages
// than Java omit parts of the class, but not the package.
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

// mostOverloads limits how many methods of one name are read.
const mostOverloads = 512

// AddBytecodes adds the bytecodes of the page's method. If several methods have the name, a method gets the samples of
// the places that no other has: a bytecode index with its line. Other samples form groups of their own.
func AddBytecodes(vm *vmstructs.VM, p *annotate.Page) error {
	methods, err := find(vm, p.Method)
	if err != nil {
		return err
	}
	if len(methods) == 0 {
		return ErrNoMethod
	}
	if len(methods) > mostOverloads {
		p.Notes = append(p.Notes, fmt.Sprintf("%d methods have this name, and %d of them were read: samples of the others "+
			"may be shown with these", len(methods), mostOverloads))
		methods = methods[:mostOverloads]
	}
	var bodies []annotate.Method
	for _, m := range methods {
		list, err := vm.Listing(m)
		if err != nil {
			return err
		}
		body := annotate.Method{Signature: m.Signature, Rows: make([]annotate.Row, len(list))}
		for i, b := range list {
			body.Rows[i] = annotate.Row{BCI: b.BCI, Line: b.Line, Bytecode: b.Text}
		}
		same := func(o annotate.Method) bool { return o.Signature == body.Signature && slices.Equal(o.Rows, body.Rows) }
		if !slices.ContainsFunc(bodies, same) { // otherwise another class loader has the same class
			bodies = append(bodies, body)
		}
	}
	if n := len(methods) - len(bodies); n > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("methods that other classes of this name have with the same bytecodes: %d; "+
			"all are shown as one", n))
	}
	spread(p, bodies)
	return nil
}
