//go:build linux

package diagnose

import (
	"slices"
	"strings"
	"testing"
)

// FuzzCommand takes arbitrary command lines apart. No word is lost, and none is invented.
func FuzzCommand(f *testing.F) {
	f.Add("java\x00-Xmx1g\x00-cp\x00a:b\x00shop.Main\x00two words\x00x", "shop.Main two words x")
	f.Add("java\x00-jar\x00a b.jar\x00--flag", "a b.jar --flag")
	f.Add("java\x00@file\x00--module=m/x.Main\x00\x00", "")
	f.Fuzz(func(t *testing.T, line, command string) {
		argv := strings.Split(line, "\x00")
		c := parseJavaCommand(argv)
		if c.main == "" && len(c.args) > 0 && !slices.Contains(argv, "") && !slices.Contains(argv, "--module=") {
			t.Fatalf("arguments of nothing: %+v", c)
		}
		if n := len(c.args); n > 0 && !slices.Equal(c.args, argv[len(argv)-n:]) {
			t.Fatalf("%q are not the last of %q", c.args, argv)
		}
		for _, o := range c.options {
			if !slices.Contains(argv, o) {
				t.Fatalf("option %q", o)
			}
		}
		main, args := splitCommand(command, argv)
		want, wantArgs := slowSplit(command, argv)
		if main != want || !slices.Equal(args, wantArgs) {
			t.Fatalf("%q %q, want %q %q", main, args, want, wantArgs)
		}
	})
}

// slowSplit tries every tail of the command line.
func slowSplit(command string, argv []string) (string, []string) {
	for i, word := range argv {
		if word != "" && strings.Join(argv[i:], " ") == command {
			return word, argv[i+1:]
		}
	}
	words := strings.Fields(command)
	if len(words) == 0 {
		return "", nil
	}
	return words[0], words[1:]
}

// TestLongCommandLine: joining each tail of this command line would take minutes.
func TestLongCommandLine(t *testing.T) {
	argv := strings.Split(strings.Repeat("a\x00", maxCommandLine/2), "\x00")
	command := strings.Repeat("a ", 1000) + "b"
	if main, args := splitCommand(command, argv); main != "a" || len(args) != 1000 {
		t.Errorf("%q and %d arguments", main, len(args))
	}
}
