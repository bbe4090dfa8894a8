//go:build linux

package oracle

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"goprof/process"
	"goprof/profile"
	"goprof/sampler/ptrace"
	"goprof/testdata/host"
	"goprof/testdata/jvmtest"
	"goprof/unwind"
)

// TestMusl: a C program on musl. Its own frames have unwind rules, though no index of them (.eh_frame_hdr: musl-gcc
// asks for none) leads there. musl itself is built without any: where it was called a named gap is, and no frame is
// guessed; where it has called a thread's first function the stack is whole.
func TestMusl(t *testing.T) {
	t.Parallel()
	jvmtest.NotQuick(t, jvmtest.Builds)
	gcc, err := exec.LookPath("musl-gcc")
	if err != nil {
		t.Skipf("needs musl's compiler (scripts/tools.sh musl-gcc): %v", err)
	}
	source, err := filepath.Abs(filepath.Join("..", "..", "testdata", "native", "musl.c"))
	if err != nil {
		t.Fatal(err)
	}
	for name, options := range map[string][]string{"dynamic": nil, "static": {"-static"},
		"with an index": {"-Wl,--eh-frame-hdr"}} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "musl")
			args := slices.Concat([]string{"-O2", "-o", program}, options, []string{source})
			if out, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			spinsFrom(t, program, ptrace.Hint{}, profile.Whole, []string{"main"}, "spin")
			end := filepath.Join(t.TempDir(), "end")
			spinsFrom(t, program, ptrace.Hint{}, profile.Whole, []string{"spin", "thread_native_entry"}, "thread", end)
			unnamed := []string{"spin", "other_entry"}
			unknown := profile.NoUnwindInfo
			if name == "static" {
				unknown = profile.Whole // so little of its thread's own stands above its stack that the mapping's end is as good
			}
			pid := spinsFrom(t, program, ptrace.Hint{}, unknown, unnamed, "unnamed", end)
			top, err := os.ReadFile(end)
			if err != nil {
				t.Fatal(err)
			}
			hint := ptrace.Hint{StackLow: 1}
			if hint.StackTop, err = strconv.ParseUint(string(top), 10, 64); err != nil {
				t.Fatal(err)
			}
			checkMuslSpins(t, pid, hint, profile.Whole, unnamed)
			// In a system call of musl's the gap stands before the program's frames: they cannot be found.
			asleep := walkedC(t, host.StartReady(t, exec.Command(program, "sleep")), 'S', ptrace.Hint{})
			checkMuslGap(t, asleep, options)
		})
	}
}

// spinsFrom starts the program, and checks the stack of its thread that spins: from innermost to entry, the first that
// musl has called.
func spinsFrom(t *testing.T, program string, hint ptrace.Hint, want profile.Reason, entry []string,
	args ...string) int {
	t.Helper()
	pid := host.StartReady(t, exec.Command(program, args...))
	checkMuslSpins(t, pid, hint, want, entry)
	return pid
}

func checkMuslSpins(t *testing.T, pid int, hint ptrace.Hint, want profile.Reason, entry []string) {
	t.Helper()
	own := append([]string{"innermost", "middle", "outer"}, entry...)
	var stack profile.Stack
	host.WaitFor(t, "the program spins", func() bool { // it may still be on its way out of fflush
		stack = walkedC(t, pid, 'R', hint)
		return framesOf(stack)[0] == own[0]
	})
	names := framesOf(stack)
	if len(names) <= len(own) || !slices.Equal(names[:len(own)], own) || stack.Truncated != want {
		t.Errorf("%q, %v, want %v", names, stack.Truncated, want)
	}
}

// checkMuslGap: a stack that does not reach its root says where unwind information ends.
func checkMuslGap(t *testing.T, stack profile.Stack, options []string) {
	t.Helper()
	library := "libc.so"
	if slices.Contains(options, "-static") {
		library = "musl" // the program itself
	}
	names := framesOf(stack)
	if stack.Truncated != profile.NoUnwindInfo || names[len(names)-1] != "[no unwind info: "+library+"]" {
		t.Errorf("%v: %q", stack.Truncated, names)
	}
	// Which function that is musl does not export. memset is the last before it that has a name there.
	if library == "libc.so" && !strings.HasPrefix(names[0], library+"+0x") {
		t.Errorf("%q sleeps", names[0])
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

// walkedC stops a program's youngest thread once it is in that state, and walks its stack.
func walkedC(t *testing.T, pid int, state byte, hint ptrace.Hint) (stack profile.Stack) {
	t.Helper()
	p, err := process.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	threads, err := p.Threads()
	if err != nil {
		t.Fatal(err)
	}
	tid := threads[len(threads)-1].TID
	host.WaitFor(t, "the program is where it says", func() bool {
		th, err := p.Thread(tid)
		return err == nil && th.State == state
	})
	lockThread(t)
	err = stopped(p, tid, hint, func(snap *process.Snapshot) { unwind.New(p, nil).Walk(snap, &stack) })
	if err != nil {
		t.Fatal(err)
	}
	return stack
}
