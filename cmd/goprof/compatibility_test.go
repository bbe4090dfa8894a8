package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goprof/cmd/goprof/exit"
)

// TestCompatible: what scripts of users rely on stands in a list: commands, flags, exit codes, and fields of JSON. A
// line that goes breaks scripts (docs/compatibility.md says when that may be), and a line that comes is a promise from
// then on. GOPROF_RECORD=1 writes the list anew.
func TestCompatible(t *testing.T) {
	const name = "testdata/compatibility.txt"
	now := slices.Concat(commandLines(newRoot(), "goprof"), exitLines(), jsonLines(t))
	slices.Sort(now)
	now = slices.Compact(now)
	if os.Getenv("GOPROF_RECORD") != "" {
		if err := os.WriteFile(name, []byte(strings.Join(now, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	promised := strings.Split(strings.TrimSuffix(string(kept), "\n"), "\n")
	if len(promised) < 300 {
		t.Errorf("only %d lines are promised", len(promised))
	}
	for _, line := range promised {
		if !slices.Contains(now, line) {
			t.Errorf("gone: %s (docs/compatibility.md)", line)
		}
	}
	for _, line := range now {
		if !slices.Contains(promised, line) {
			t.Errorf("new: %s: GOPROF_RECORD=1 go test ./cmd/goprof -run TestCompatible promises it", line)
		}
	}
}

// commandLines are the commands that users see, and their flags.
func commandLines(cmd *cobra.Command, path string) []string {
	lines := []string{"command " + path}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			lines = append(lines, fmt.Sprintf("flag %s --%s %s", path, f.Name, f.Value.Type()))
		}
	})
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			lines = append(lines, commandLines(sub, path+" "+sub.Name())...)
		}
	}
	return lines
}

func exitLines() (lines []string) {
	for _, m := range exit.Codes {
		lines = append(lines, fmt.Sprintf("exit %d", m.Code))
		for _, c := range m.Causes {
			for _, name := range c.Names {
				lines = append(lines, fmt.Sprintf("exit %d %s", m.Code, name))
			}
		}
	}
	return lines
}

// jsonLines are the fields of the JSON that goprof itself defines, by the Go type that holds them. Firefox's format
// and the data within pages are left out: goprof's own pages alone read the second.
func jsonLines(t *testing.T) (lines []string) {
	for _, dir := range []string{"../../profile", "../../output", "../../output/dumps", "../../output/diff",
		"../../output/snap", "../../output/top", "../../annotate", ".", "internal/hosttext"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if spec, ok := n.(*ast.TypeSpec); ok {
					lines = append(lines, fieldLines(spec.Name.Name, spec.Type)...)
				}
				return true
			})
		}
	}
	return lines
}

// fieldLines are the JSON fields within a type, nested ones too.
func fieldLines(typeName string, typ ast.Expr) (lines []string) {
	ast.Inspect(typ, func(n ast.Node) bool {
		field, ok := n.(*ast.Field)
		if !ok || field.Tag == nil {
			return true
		}
		tag, err := strconv.Unquote(field.Tag.Value)
		if err != nil {
			return true
		}
		key, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		if key != "" && key != "-" {
			lines = append(lines, fmt.Sprintf("json %s %s", typeName, key))
		}
		return true
	})
	return lines
}
