//go:build linux

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// goprof tells people to run commands. These tests check that goprof has these commands.

// commandEnds is what ends a command in a sentence, or in a shell.
var commandEnds = regexp.MustCompile(`  \(|&&|[;|\n]`)

// fmtVerb matches verbs of fmt. A number takes their place: it can be a pid, a name or a file.
var fmtVerb = regexp.MustCompile(`%(?:\[\d+\])?[dsqv]`)

// TestNextSteps parses each goprof command in a finding's next step as run would parse it.
func TestNextSteps(t *testing.T) {
	found := 0
	for _, dir := range []string{"triage", "triage/hserr", "triage/autopsy"} {
		for _, told := range stringsOf(t, filepath.Join("..", "..", dir), "next", "Next") {
			for _, line := range commandsIn(told) {
				found++
				if err := parses(line); err != nil {
					t.Errorf("%s: %q of %q: %v", dir, line, told, err)
				}
			}
		}
	}
	if found < 14 { // there were so many when this test was written
		t.Errorf("only %d commands were found", found)
	}
	for _, bad := range []string{"dumps --pid 1", "dump --pdi 1", "dump --pid x", "dump 1 2", "record 1 -d 30sec"} {
		if parses(bad) == nil {
			t.Errorf("goprof %s is taken for a command that works", bad)
		}
	}
}

// TestToldFlags: wherever a text of goprof names a command, the flags behind it are flags of that command.
func TestToldFlags(t *testing.T) {
	found := 0
	for _, dir := range []string{".", "../../sampler", "../../session", "../../triage", "../../agent", "../../diagnose",
		"../../output"} {
		err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err != nil || !e.IsDir() || e.Name() == "testdata" {
				return err
			}
			for _, told := range stringsOf(t, path) {
				for _, line := range commandsIn(told) {
					found++
					if flag := unknownFlag(line); flag != "" {
						t.Errorf("%s: %q has a flag that it does not know: %s", path, line, flag)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 100 {
		t.Errorf("only %d commands were found", found)
	}
	for _, bad := range []string{"dump --pdi 1 shows it", "record -Q", "flame a.jfr, or --by thread"} {
		if unknownFlag(bad) == "" {
			t.Errorf("%q has no flag that is not known", bad)
		}
	}
}

// commandsIn are the goprof commands in a text, without their first word.
func commandsIn(text string) (lines []string) {
	for _, piece := range strings.Split(fmtVerb.ReplaceAllString(text, "1"), "goprof ")[1:] {
		if at := commandEnds.FindStringIndex(piece); at != nil {
			piece = piece[:at[0]]
		}
		if strings.HasSuffix(piece, " ") {
			piece += "1" // this completes the name of a file
		}
		lines = append(lines, strings.ReplaceAll(strings.TrimSpace(piece), "PID", "1"))
	}
	return lines
}

// parses returns what is wrong with a command, as far as its flags and arguments show it.
func parses(line string) error {
	root := newRoot()
	cmd, rest, err := root.Find(strings.Fields(line))
	if err != nil {
		return err
	}
	if cmd == root {
		return noCommand(root, rest)
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

var aToldFlag = regexp.MustCompile(`(?:^| )(--[a-z][a-z0-9-]*|-[a-zA-Z])(?:[ =,.:)]|$)`)

// unknownFlag is a flag behind a command's name that this command does not have. Text without a command has no such
// flag.
func unknownFlag(line string) string {
	root := newRoot()
	line, _, _ = strings.Cut(line+" ", " -- ")
	line, _, _ = strings.Cut(line, "goprof")
	cmd, _, err := root.Find(strings.Fields(strings.TrimRight(line, " "))[:min(1, len(strings.Fields(line)))])
	if err != nil || cmd == root {
		return ""
	}
	cmd.InitDefaultHelpFlag()
	for _, m := range aToldFlag.FindAllStringSubmatch(strings.ReplaceAll(line, " ", "  "), -1) {
		if !hasFlag(cmd, m[1]) {
			return m[1]
		}
	}
	return ""
}

func hasFlag(cmd *cobra.Command, flag string) bool {
	if name, long := strings.CutPrefix(flag, "--"); long {
		return cmd.Flags().Lookup(name) != nil
	}
	return cmd.Flags().ShorthandLookup(flag[1:]) != nil
}

// stringsOf are the string literals in the Go files of a folder. With keys, only those in values of these keys.
func stringsOf(t *testing.T, dir string, keys ...string) (all []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	collect := func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, err := strconv.Unquote(lit.Value); err == nil {
				all = append(all, s)
			}
		}
		return true
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if len(keys) == 0 {
				return collect(n)
			}
			kv, ok := n.(*ast.KeyValueExpr)
			if !ok {
				return true
			}
			for _, key := range keys {
				if id, ok := kv.Key.(*ast.Ident); ok && id.Name == key {
					ast.Inspect(kv.Value, collect)
				}
			}
			return true
		})
	}
	return all
}
