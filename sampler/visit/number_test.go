//go:build linux

package visit

import (
	"bytes"
	"sync/atomic"
	"testing"
	"time"

	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/sampler/perf"
	"goprof/testdata/ctest"
	"goprof/testdata/sampletest"
)

// TestNumberOfAnother: a process ends, and another one gets its number at once, as it happens when numbers begin again.
// The recording ends with the first process. It has no sample of the second.
func TestNumberOfAnother(t *testing.T) {
	program := ctest.Compile(t, successorProgram)
	const interval = time.Millisecond
	engines := map[string]func(t *testing.T, pid int) sampler.Engine{
		"ptrace": func(_ *testing.T, pid int) sampler.Engine { return New(pid, ctest.CPU()) },
		"perf":   func(_ *testing.T, pid int) sampler.Engine { return perf.New(pid, ctest.CPU()) },
		"group of ptrace": func(t *testing.T, pid int) sampler.Engine {
			g := NewGroup(interval, 0)
			sampletest.RunGroup(t, g, ErrNoVisits)
			return g.Member(pid, ctest.CPU())
		},
		"group of perf": func(t *testing.T, pid int) sampler.Engine {
			g := perf.NewGroup(interval, 0)
			sampletest.RunGroup(t, g, perf.ErrNoWide)
			return g.Member(pid)
		},
	}
	for name, engine := range engines {
		t.Run(name, func(t *testing.T) {
			p := ctest.Start(t, program)
			pid := p.Number(t)
			first, second := 0, 0
			passedOn := make(chan bool, 1)
			each := func(l *look.Look) {
				first += min(bytes.Count(l.Stack, bytes.Repeat([]byte{0x5a}, 256)), 1)
				second += min(bytes.Count(l.Stack, bytes.Repeat([]byte{0xa5}, 256)), 1)
			}
			got := sampletest.Session(t, engine(t, pid), sampler.Config{Interval: interval}, 64, each,
				func(seen *atomic.Int64) {
					sampletest.UntilSamples(100)(seen)
					p.In.Write([]byte("x"))
					passedOn <- p.Number(t) == pid
					time.Sleep(100 * time.Millisecond)
				})
			if !<-passedOn {
				t.Skip("this machine lets nobody choose the number of a process: that needs root")
			}
			t.Logf("%d samples, %d of the first process, %d of the second; lost %v", got.Taken, first, second, got.Lost)
			if got.Err != nil || !got.Ended || first < 90 || second != 0 {
				t.Errorf("ended: %v, %d of the first process, %d of the second; %v", got.Ended, first, second, got.Err)
			}
		})
	}
}

// successorProgram has a child that spins. At a byte of its input it ends the child, and has another one with the same
// number.
const successorProgram = `
#include <sys/prctl.h>
static int parent;
static void spin(int c) {
	volatile char pad[16384];
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) _exit(0); // the parent has ended before that call
	memset((void *)pad, c, sizeof pad);
	for (volatile long i = 0;; i++) pad[i & 1023] = c;
}
int main(void) {
	parent = getpid();
	int pid = fork();
	if (pid == 0) spin(0x5a);
	ready();
	say(pid);
	getchar();
	kill(pid, SIGKILL);
	waitpid(pid, 0, 0);
	uint64_t clone_args[10] = { [4] = SIGCHLD, [8] = (uintptr_t)&pid, [9] = 1 }; // exit_signal, set_tid, set_tid_size
	int again = syscall(435, clone_args, sizeof clone_args); // clone3
	if (again == 0) spin(0xa5);
	say(again);
	getchar();
}`
