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

// maxColumns is how long a line of Go may be; a tab counts as one.
const maxColumns = 120

// longLines are the files that may have longer ones, by their beginnings. What is not a table is to be wrapped by
// whoever edits the file next.
var longLines = []string{
	"arch/amd64/trace_test.go",  // tables of machine code
	"arch/amd64/decode_test.go", // beside what objdump says
	"arch/arm64/decode_test.go",
	"process/procfs/bench_test.go", // lines of /proc
	"process/symbols_fuzz_test.go",
	"process/imports_test.go",    // a line for each package
	"profile/naming/",            // tables of names
	"vmstructs/captured_test.go", // tables that JVMs export
	"sampler/diagnose/jvms_container_test.go",
	"profile/place_test.go",
	"cmd/goprof/exit/codes.go",
	"cmd/goprof/heat_test.go",
	"cmd/goprof/script_test.go",
	"output/firefox/check_test.go",
	"output/flame/browser_test.go",
	"output/heat/browser_test.go",
	"output/heat/encode_test.go",
	"output/heat/heat_test.go",
	"output/recording/filter_test.go",
	"output/recording/open_test.go",
	"output/summary_test.go",
	"testdata/oracle/matrix_rows_test.go",
	"testdata/oracle/pools_test.go",
	"testdata/oracle/shadow_test.go",
	"testdata/oracle/steps_planted_test.go",
	"testdata/oracle/witness_mutation_test.go",
}

// TestWidth: lines of Go are short enough to be read beside others. The text of a raw string, which is another
// language's, and commands in comments may be as long as they are.
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
		mayBeLong := func(start string) bool { return strings.HasPrefix(file, start) }
		if !strings.HasSuffix(file, ".go") || slices.ContainsFunc(longLines, mayBeLong) {
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

// tooLong are the numbers of lines that are.
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

// rawLines are the lines that have part of a raw string.
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
