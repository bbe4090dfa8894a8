//go:build linux

package jvmtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sameName are names of types that several packages of a tree have. A file may use them side by side.
var sameName = []string{
	"Options", // each package has its own
	"File",    // output writes its File, recording reads its File
	"Engine",  // a folder of sampler has its own, which is a sampler.Engine
	"Group",   // the engine of many processes, by visits or by perf
}

// TestTypeNames: no file uses two types with one name from one tree (output and its folders, sampler and its
// folders). A reader would have to look at the package each time. The name of an unexported type occurs once in its
// tree: no package's name stands beside it.
func TestTypeNames(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	files := parseAll(t, root)
	types := map[string]map[string]bool{} // by package: the names of its types, and whether they are more than a test's
	for name, file := range files {
		dir := path.Dir(name)
		if types[dir] == nil {
			types[dir] = map[string]bool{}
		}
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				for _, s := range g.Specs {
					types[dir][s.(*ast.TypeSpec).Name.Name] = !strings.HasSuffix(name, "_test.go")
				}
			}
		}
	}
	if len(types) < 30 {
		t.Fatalf("only %d packages", len(types))
	}
	for _, twice := range privateTwice(types) {
		t.Error(twice)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for _, twice := range usedTwice(path.Dir(name), files[name], types) {
			t.Errorf("%s: %s", name, twice)
		}
	}
}

// twinTrees are the trees with types of the same names on purpose: twins of CPUs, programs of their own.
var twinTrees = []string{"arch", "scripts", "testdata"}

// privateTwice are the names of unexported types that several packages of a tree have.
func privateTwice(types map[string]map[string]bool) (found []string) {
	of := map[[2]string][]string{} // by tree and name: packages
	for _, pkg := range slices.Sorted(maps.Keys(types)) {
		tree, _, _ := strings.Cut(pkg, "/")
		if slices.Contains(twinTrees, tree) {
			continue
		}
		for name, more := range types[pkg] {
			if more && !ast.IsExported(name) {
				of[[2]string{tree, name}] = append(of[[2]string{tree, name}], pkg)
			}
		}
	}
	for key, packages := range of {
		if len(packages) > 1 {
			found = append(found, key[1]+" is a type of "+strings.Join(packages, " and of "))
		}
	}
	slices.Sort(found)
	return found
}

// usedTwice are the names of types that a file takes from two packages of one tree.
func usedTwice(dir string, file *ast.File, types map[string]map[string]bool) (found []string) {
	imports := map[string]string{} // name -> folder
	for _, i := range file.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		if p, ok := strings.CutPrefix(p, "goprof/"); ok {
			imports[path.Base(p)] = p
		}
	}
	from := map[[2]string]map[string]bool{} // by tree and name: packages
	use := func(pkg, name string) {
		tree, _, _ := strings.Cut(pkg, "/")
		_, has := types[pkg][name]
		if key := [2]string{tree, name}; has && ast.IsExported(name) && !slices.Contains(sameName, name) {
			if from[key] == nil {
				from[key] = map[string]bool{}
			}
			from[key][pkg] = true
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && imports[x.Name] != "" {
				use(imports[x.Name], n.Sel.Name)
			}
		case *ast.TypeSpec:
			use(dir, n.Name.Name)
		case *ast.StarExpr:
			useIdent(use, dir, n.X)
		case *ast.CompositeLit:
			useIdent(use, dir, n.Type)
		case *ast.Field:
			useIdent(use, dir, n.Type)
		case *ast.ArrayType:
			useIdent(use, dir, n.Elt)
		}
		return true
	})
	for key, packages := range from {
		if len(packages) > 1 {
			found = append(found, key[1]+" of "+strings.Join(slices.Sorted(maps.Keys(packages)), " and of "))
		}
	}
	slices.Sort(found)
	return found
}

// useIdent notes a use of a type of the package itself.
func useIdent(use func(pkg, name string), dir string, e ast.Expr) {
	if id, ok := e.(*ast.Ident); ok {
		use(dir, id.Name)
	}
}

// parseAll parses all files of the program and its tests, by their paths.
func parseAll(t *testing.T, root string) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, name)
		if entry.IsDir() && slices.Contains([]string{".git", "build", "testdata"}, entry.Name()) {
			return filepath.SkipDir
		}
		if strings.HasSuffix(rel, ".go") {
			file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			files[filepath.ToSlash(rel)] = file
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
