//go:build linux

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"goprof/cmd/goprof/exit"
	"goprof/diagnose"
)

// TestEveryCauseIsDocumented: "goprof help exit-codes" names every cause that the session can find, under its exit
// code, and no other cause.
func TestEveryCauseIsDocumented(t *testing.T) {
	documented := map[string]exit.Code{}
	for _, m := range exit.Codes {
		for _, c := range m.Causes {
			for _, name := range c.Names {
				if _, twice := documented[name]; twice {
					t.Errorf("%s is there twice", name)
				}
				documented[name] = m.Code
			}
		}
	}
	found := causesInSource(t)
	if len(found) < 20 {
		t.Fatalf("only %d causes in the source: %v", len(found), found)
	}
	for name, class := range found {
		code, ok := documented[name]
		if !ok {
			t.Errorf("%s is not in the table", name)
		}
		if class != "" && code != exit.CodeOf(classes[class]) {
			t.Errorf("%s stands under %d, and is %s", name, code, class)
		}
	}
	for name := range documented {
		if _, ok := found[name]; !ok {
			t.Errorf("the table has %s, and no source has", name)
		}
	}
}

var classes = map[string]diagnose.Class{
	"NoProcess": diagnose.NoProcess, "NotJVM": diagnose.NotJVM, "Forbidden": diagnose.Forbidden, "Gone": diagnose.Gone,
}

// causesInSource finds the names of causes in the source of package diagnose: Cause{Name: "x"} with its Class, if
// both stand together, and c.Name = "x". The name may be a constant.
func causesInSource(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../diagnose/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	found, constants := map[string]string{}, map[string]string{}
	var trees []*ast.File
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		trees = append(trees, tree)
		ast.Inspect(tree, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && len(v.Names) == 1 && len(v.Values) == 1 {
				constants[v.Names[0].Name] = text(v.Values[0], nil)
			}
			return true
		})
	}
	for _, tree := range trees {
		ast.Inspect(tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if id, ok := n.Type.(*ast.Ident); ok && id.Name == "Cause" {
					noteLiteral(found, n, constants)
				}
			case *ast.AssignStmt:
				noteAssignment(found, n, constants)
			}
			return true
		})
	}
	return found
}

func noteLiteral(found map[string]string, lit *ast.CompositeLit, constants map[string]string) {
	name, class := "", ""
	for _, e := range lit.Elts {
		pair, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		switch key := pair.Key.(*ast.Ident).Name; key {
		case "Name":
			name = text(pair.Value, constants)
		case "Class":
			if id, ok := pair.Value.(*ast.Ident); ok {
				class = id.Name
			}
		}
	}
	if name != "" && found[name] == "" {
		found[name] = class
	}
}

func noteAssignment(found map[string]string, n *ast.AssignStmt, constants map[string]string) {
	if len(n.Lhs) != len(n.Rhs) {
		return
	}
	for i, left := range n.Lhs {
		field, ok := left.(*ast.SelectorExpr)
		if name := text(n.Rhs[i], constants); ok && name != "" && field.Sel.Name == "Name" {
			if _, known := found[name]; !known {
				found[name] = ""
			}
		}
	}
}

// text is the value of a literal, or of one of these constants.
func text(e ast.Expr, constants map[string]string) string {
	if id, ok := e.(*ast.Ident); ok {
		return constants[id.Name]
	}
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		s, _ := strconv.Unquote(lit.Value)
		return s
	}
	return ""
}
