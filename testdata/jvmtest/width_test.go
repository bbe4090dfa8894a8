//go:build linux

package jvmtest

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxColumns bounds a line of Go. A tab counts as one column.
const maxColumns = 120

// longLines are the files that may have longer lines. Each holds a table, or output of a program.
var longLines = []string{
	"arch/amd64/trace_test.go",      // tables of machine code
	"cmd/goprof/exit/codes.go",      // a line for each cause
	"process/procfs/bench_test.go",  // lines of /proc
	"process/symbols_fuzz_test.go",  // notes of ELF files
	"profile/naming/naming_test.go", // tables of names
	"vmstructs/captured_test.go",    // tables that JVMs export
}

// TestWidth: lines of Go are short enough to be read side by side. Raw strings, which are text of another language,
// and commands in comments may be of any length.
func TestWidth(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && (name == ".git" || name == "build") {
			return filepath.SkipDir
		}
		file, _ := filepath.Rel(root, path)
		if !strings.HasSuffix(file, ".go") || slices.Contains(longLines, filepath.ToSlash(file)) {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, line := range tooLong(text) {
			t.Errorf("%s:%d is longer than %d columns", file, line, maxColumns)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// tooLong are the numbers of the lines that are too long.
func tooLong(text []byte) (lines []int) {
	raw := rawLines(text)
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		isCommand := strings.HasPrefix(line, "//\t")
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > maxColumns && !raw[number] && !isCommand {
			lines = append(lines, number)
		}
	}
	return lines
}

// rawLines are the lines that have a part of a raw string.
func rawLines(text []byte) map[int]bool {
	raw := map[int]bool{}
	file := token.NewFileSet().AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return raw
		}
		if tok == token.STRING && literal[0] == '`' {
			for i := range strings.Count(literal, "\n") + 1 {
				raw[file.Line(pos)+i] = true
			}
		}
	}
}

func TestTooLong(t *testing.T) {
	long := strings.Repeat("x", maxColumns)
	text := "package p\n\nvar a = `\n" + long + "x`\n\n// " + long + "\n//\tgo test " + long + "\nvar b" + long + " int\n"
	if got := tooLong([]byte(text)); !slices.Equal(got, []int{6, 8}) {
		t.Errorf("lines %v", got)
	}
}
