//go:build linux

package process

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/arch/amd64"
	"goprof/testdata/jvmtest"
)

// TestEndsOfCode: code is refused if some bytes may not be an instruction, or if there are too many ends.
func TestEndsOfCode(t *testing.T) {
	for _, c := range []struct {
		name            string
		code            string
		second          int // offset of the second piece
		returns, leaves int // both 0: refused
	}{
		{"a return", "\xc3", 0, 1, 0},
		{"a branch into an instruction", "\x74\x01\xb8\xc3\x00\x00\x00\xc3", 0, 0, 0},
		{"a branch to another piece", "\x74\x01\xc3\xb8\x00\x00\x00\x00\xc3", 3, 2, 0},
		{"a branch into an instruction of it", "\x74\x02\xc3\xb8\x00\x00\x00\x00\xc3", 3, 0, 0},
		{"a jump to a stub", "\xeb\x01\xc3\xff\x25\x00\x00\x00\x00", 3, 1, 1},
		{"a branch to a stub", "\x74\x01\xc3\xff\x25\x00\x00\x00\x00", 3, 0, 0},
		{"a branch out of the code", "\x74\x7f\xc3", 0, 0, 0},
		{"many returns", strings.Repeat("\xc3", maxEnds), 0, maxEnds, 0},
		{"too many", strings.Repeat("\xc3", maxEnds+1), 0, 0, 0},
	} {
		e := &endFinder{l: &loaded{hasCFI: true}, cpu: amd64.CPU, code: []byte(c.code)}
		e.pieces = []fde{{size: uint64(len(c.code))}}
		if c.second > 0 {
			e.pieces[0].size = uint64(c.second)
		}
		if c.second > 0 && c.leaves == 0 {
			e.pieces = append(e.pieces, fde{start: uint64(c.second), size: uint64(len(c.code) - c.second)})
		}
		ok := e.readAll()
		if want := c.returns+c.leaves > 0; ok != want ||
			want && (len(e.returns) != c.returns || len(e.leaves) != c.leaves) {
			t.Errorf("%s: %v, returns at %x, leaves at %x", c.name, ok, e.returns, e.leaves)
		}
	}
}

// dumpedReturn is a line of objdump: "   98a30:	ret".
var dumpedReturn = regexp.MustCompile(`(?m)^ *([0-9a-f]+):\s+(?:repz |bnd )?ret\b`)

// TestEnds: functions of the C library have returns at the same addresses as in objdump's output. Some functions have
// no return of their own, and continue in another function.
func TestEnds(t *testing.T) {
	jvmtest.NotQuick(t, jvmtest.StartsTool)
	if _, err := exec.LookPath("objdump"); err != nil {
		t.Skip("objdump (Debian: binutils) is not installed")
	}
	cmd := exec.Command("sleep", "100")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	p := awaitLibc(t, cmd.Process.Pid)
	defer p.Close()
	for _, name := range []string{"malloc", "calloc", "realloc", "posix_memalign", "free", "qsort", "getenv", "strtol",
		"fopen", "setlocale"} {
		found, err := p.Functions("libc", name)
		if err != nil {
			t.Fatal(err)
		}
		f := found[0]
		returns, _, err := p.Ends(f)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		l, _ := findExec(p.exec, f.Addr)
		piece, err := l.unwindTable().find(f.Addr - l.Bias)
		if err != nil {
			t.Fatal(err)
		}
		var got, want []uint64
		for _, r := range returns {
			if at := r.Addr - l.Bias; at-piece.start < piece.size { // not in its cold part or another function
				got = append(got, at)
			}
		}
		out, err := exec.Command("objdump", "-d", "--no-show-raw-insn", fmt.Sprintf("--start-address=%d", piece.start),
			fmt.Sprintf("--stop-address=%d", piece.start+piece.size), fmt.Sprintf("/proc/%d/root%s", cmd.Process.Pid,
				l.all[0].Path)).Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range dumpedReturn.FindAllSubmatch(out, -1) {
			at, _ := strconv.ParseUint(string(m[1]), 16, 64)
			want = append(want, at)
		}
		if slices.Sort(got); !slices.Equal(got, want) || len(returns) == 0 {
			t.Errorf("%s returns at %x, objdump says %x", name, got, want)
		}
	}
	if _, _, err := p.Ends(Function{Addr: 1}); !errors.Is(err, ErrNoImage) {
		t.Errorf("the ends of nothing: %v", err)
	}
}

// awaitLibc opens a process as soon as it has loaded the C library.
func awaitLibc(t *testing.T, pid int) *Process {
	t.Helper()
	for range 1000 {
		if p, err := Open(pid); err == nil {
			if _, err := p.Functions("libc", "malloc"); err == nil {
				return p
			}
			p.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Skip("this C library is not glibc")
	return nil
}
