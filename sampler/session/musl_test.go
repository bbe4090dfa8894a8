//go:build linux

package session

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"goprof/profile"
	"goprof/sampler"
	"goprof/target"
	"goprof/unwind"
)

// TestMusl: a C program on musl. Its own frames have unwind rules, though no index of them (.eh_frame_hdr: musl-gcc asks
// for none) leads there; musl itself is built without any, so below it is a named gap, and no frame is guessed.
func TestMusl(t *testing.T) {
	gcc, err := exec.LookPath("musl-gcc")
	if err != nil {
		t.Skipf("needs musl's compiler (scripts/tools.sh musl-gcc): %v", err)
	}
	source, err := filepath.Abs(filepath.Join("..", "..", "testdata", "native", "musl.c"))
	if err != nil {
		t.Fatal(err)
	}
	for name, options := range map[string][]string{"dynamic": nil, "static": {"-static"}, "with an index": {"-Wl,--eh-frame-hdr"}} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "musl")
			args := slices.Concat([]string{"-O2", "-o", program}, options, []string{source})
			if out, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			own := []string{"innermost", "middle", "outer", "main"}
			var spinning profile.Stack
			pid := startReady(t, exec.Command(program, "spin"))
			waitFor(t, "the program spins", func() bool { // it may still be on its way out of fflush
				spinning = walkedC(t, pid, 'R')
				return framesOf(spinning)[0] == own[0]
			})
			if names := framesOf(spinning); len(names) < len(own) || !slices.Equal(names[:len(own)], own) {
				t.Errorf("spinning: %q", names)
			}
			checkMuslRoot(t, spinning, options)
			// In a system call of musl's the gap stands before the program's frames: they cannot be found.
			asleep := walkedC(t, startReady(t, exec.Command(program, "sleep")), 'S')
			checkMuslRoot(t, asleep, options)
		})
	}
}

// checkMuslRoot: a stack that does not reach its root says where unwind information ends.
func checkMuslRoot(t *testing.T, stack profile.Stack, options []string) {
	t.Helper()
	library := "libc.so"
	if slices.Contains(options, "-static") {
		library = "musl" // the program itself
	}
	names := framesOf(stack)
	if stack.Truncated != profile.NoUnwindInfo || names[len(names)-1] != "[no unwind info: "+library+"]" {
		t.Errorf("%v: %q", stack.Truncated, names)
	}
	for _, name := range names {
		if strings.Contains(name, "+0x") && !strings.HasPrefix(name, library+"+0x") {
			t.Errorf("%s in %q", name, names)
		}
	}
}

func framesOf(stack profile.Stack) (names []string) {
	for _, f := range stack.Frames {
		names = append(names, f.Func.Name)
	}
	return names
}

// walkedC stops a program of one thread once it is in that state, and walks its stack.
func walkedC(t *testing.T, pid int, state byte) (stack profile.Stack) {
	t.Helper()
	p, err := target.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	waitFor(t, "the program is where it says", func() bool {
		th, err := p.Thread(pid)
		return err == nil && th.State == state
	})
	lockThread(t)
	err = stopped(p, pid, sampler.Hint{}, func(snap *target.Snapshot) { unwind.New(p, nil).Walk(snap, &stack) })
	if err != nil {
		t.Fatal(err)
	}
	return stack
}
