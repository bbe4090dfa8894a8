//go:build linux

package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzProcText reads arbitrary text as files of /proc, and then what the kernel would have
// written for a process of that name.
func FuzzProcText(f *testing.F) {
	f.Add([]byte("java"), byte('S'), uint64(31), uint64(1<<40))
	f.Add([]byte("a) R 1 (b\n"), byte('Z'), ^uint64(0), uint64(0))
	f.Add([]byte("Name:\tx\nUid:\t1\nCapEff:\tzz\nState:\t\nNSpid:\t1 2 3\n"), byte('t'), uint64(7), uint64(7))
	f.Fuzz(func(t *testing.T, text []byte, state byte, a, b uint64) {
		parseProcStat(text)
		if s := parseProcStatus(text); !utf8.ValidString(s.name) {
			t.Fatalf("%q", s.name)
		}
		if state <= ' ' || state >= 0x7f || state == ')' {
			state = 'S'
		}
		line := fmt.Appendf(nil, "7 (%s) %c 1 7 7 0 -1 4194560 1 2 3 4 %d %d 0 0 20 0 %d 0 %d %d 2 3\n", text, state, a, b, a, b, a)
		s, ok := parseProcStat(line)
		if !ok || s.state != state || s.memory != a || s.start != ticks(b) || s.cpu < 0 || s.threads < 0 ||
			s.comm != strings.ToValidUTF8(string(text), "\uFFFD") {
			t.Fatalf("%q: %+v %v", line, s, ok)
		}
		status := parseProcStatus(fmt.Appendf(nil, "Name:\tx\nState:\t%c (y)\nPid:\t7\nCapEff:\t%016x\nUid:\t1\t2\t3\t4\nNSpid:\t7\t1\n", state, a))
		if status.state != state || status.effective != a || status.suid != 3 || !slices.Equal(status.nspid, []int{7, 1}) {
			t.Fatalf("%+v", status)
		}
	})
}

// FuzzCommand takes arbitrary command lines apart: no word is lost, and none invented.
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

// TestLongCommandLine: to join each tail of it would take minutes.
func TestLongCommandLine(t *testing.T) {
	argv := strings.Split(strings.Repeat("a\x00", maxCommandLine/2), "\x00")
	command := strings.Repeat("a ", 1000) + "b"
	if main, args := splitCommand(command, argv); main != "a" || len(args) != 1000 {
		t.Errorf("%q and %d arguments", main, len(args))
	}
}
