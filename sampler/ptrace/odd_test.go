//go:build linux

package ptrace

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/sampler/look"
	"goprof/testdata/ctest"
)

// The tests of this file look at threads in odd states.

func TestGroupStoppedThreadStaysStopped(t *testing.T) {
	p := ctest.Run(t, ctest.Spin)
	p.Line(t)
	p.Process.Signal(unix.SIGSTOP)
	ctest.Eventually(t, "stopped", func() bool { return ctest.State(p.PID, p.PID) == 'T' })
	onTracer(t, p.PID, func(tr *Tracer) {
		for range 200 {
			snap, o := lookPatiently(tr, p.PID, 0)
			if o != Taken || len(snap.Stack) < 16384 {
				t.Fatalf("%v, %d bytes", o, len(snap.Stack))
			}
		}
		if tr.Signals != 0 {
			t.Errorf("%d group stops were taken for signals", tr.Signals)
		}
	})
	ctest.Eventually(t, "stopped as before", func() bool { return ctest.State(p.PID, p.PID) == 'T' })
	p.Process.Signal(unix.SIGCONT)
	ctest.Eventually(t, "runs on", func() bool { return ctest.State(p.PID, p.PID) == 'R' })
}

// A stop signal comes during a look. It is delivered: the process stops, and CONT wakes it.
func TestStopSignalsDuringLooks(t *testing.T) {
	p := ctest.Run(t, ctest.Spin)
	p.Line(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 300 {
			p.Process.Signal(unix.SIGSTOP)
			time.Sleep(200 * time.Microsecond)
			p.Process.Signal(unix.SIGCONT)
			time.Sleep(200 * time.Microsecond)
		}
		p.Process.Signal(unix.SIGSTOP)
	}()
	onTracer(t, p.PID, func(tr *Tracer) {
		for {
			if _, o := lookPatiently(tr, p.PID, 0); o != Taken {
				t.Fatalf("%v %v", o, tr.Err())
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	ctest.Eventually(t, "the last SIGSTOP holds", func() bool { return ctest.State(p.PID, p.PID) == 'T' })
	p.Process.Signal(unix.SIGCONT)
	ctest.Eventually(t, "runs on", func() bool { return ctest.State(p.PID, p.PID) == 'R' })
}

// vforkProgram waits in vfork (state D) while its child sleeps. The child ends when it is told to.
const vforkProgram = `
int main(void) {
	int fds[2];
	pipe(fds);
	ready();
	char c;
	if (vfork() == 0) { read(0, &c, 1); _exit(0); }
	say(1);
	for (volatile long i = 0;; i++);
}`

func TestUninterruptibleThreadIsCollected(t *testing.T) {
	p := ctest.Run(t, vforkProgram)
	ctest.Eventually(t, "in vfork", func() bool { return ctest.State(p.PID, p.PID) == 'D' })
	onTracer(t, p.PID, func(tr *Tracer) {
		snap := new(look.Look)
		if o := tr.Look(p.PID, Hint{}, snap); o != Pending {
			t.Fatalf("%v, want pending", o)
		}
		if o := tr.Look(p.PID, Hint{}, new(look.Look)); o != Backlog {
			t.Errorf("a second look at a pending thread: %v", o)
		}
		if _, _, ok := tr.Collect(); ok || tr.Pending() != 1 {
			t.Fatalf("collected a thread in state %c, pending %d", ctest.State(p.PID, p.PID), tr.Pending())
		}
		p.In.Write([]byte("x")) // ends the child
		ctest.Eventually(t, "collected", func() bool {
			s, o, ok := tr.Collect()
			if ok && o != Missed && (s != snap || o != Taken || s.TID != p.PID || len(s.Stack) == 0) {
				t.Errorf("%v of %d, %d bytes", o, s.TID, len(s.Stack))
			}
			return ok
		})
		if tr.Pending() != 0 {
			t.Errorf("pending %d", tr.Pending())
		}
	})
	p.Line(t)
	ctest.Eventually(t, "runs on", func() bool { return ctest.State(p.PID, p.PID) == 'R' })
}

// A stop is still pending when the tracing thread ends. The stop never comes. AllUntil looks at the thread without a
// stop.
func TestPendingStopIsDroppedWithTheTracer(t *testing.T) {
	p := ctest.Run(t, vforkProgram)
	ctest.Eventually(t, "in vfork", func() bool { return ctest.State(p.PID, p.PID) == 'D' })
	lost := 0
	onTracer(t, p.PID, func(tr *Tracer) {
		AllUntil(nil, tr, lastWait, []Subject{{TID: p.PID}}, func(s *look.Look, o Outcome) {
			if s.TID != p.PID || o != Taken || !s.Waiting.Unstopped || s.Waiting.State != 'D' || len(s.Stack) == 0 {
				t.Errorf("%d: %v, %c, %d bytes; want a look without a stop", s.TID, o, s.Waiting.State, len(s.Stack))
			}
			lost++
		})
	})
	if lost != 1 {
		t.Errorf("%d outcomes for one thread", lost)
	}
	ctest.Eventually(t, "no process traces it", func() bool { return ctest.TracerOf(p.PID) == 0 })
	p.In.Write([]byte("x"))
	p.Line(t)
	ctest.Eventually(t, "runs on", func() bool { return ctest.State(p.PID, p.PID) == 'R' })
}

func TestAlreadyTraced(t *testing.T) {
	p := ctest.Run(t, ctest.Spin)
	other := ctest.Run(t, ctest.Seizes, strconv.Itoa(p.PID))
	onTracer(t, p.PID, func(tr *Tracer) {
		_, o := lookPatiently(tr, p.PID, 0)
		if o != AlreadyTraced {
			t.Errorf("%v, want already traced", o)
		}
		other.Process.Kill()
		other.Wait()
		if _, o := lookPatiently(tr, p.PID, 0); o != Taken {
			t.Errorf("after that tracer's end: %v", o)
		}
	})
}

const zombieLeaderProgram = `
static void *spin(void *x) { say(gettid_()); for (volatile long i = 0;; i++); }
int main(void) {
	pthread_t t;
	ready();
	pthread_create(&t, 0, spin, 0);
	pthread_exit(0);
}`

func TestZombieLeader(t *testing.T) {
	p := ctest.Run(t, zombieLeaderProgram)
	tid := p.Number(t)
	ctest.Eventually(t, "a zombie leader", func() bool { return ctest.State(p.PID, p.PID) == 'Z' })
	onTracer(t, p.PID, func(tr *Tracer) {
		if _, o := lookPatiently(tr, p.PID, 0); o != Zombie {
			t.Errorf("leader: %v", o)
		}
		if snap, o := lookPatiently(tr, tid, 0); o != Taken || len(snap.Stack) == 0 {
			t.Errorf("the thread that lives on: %v, %d bytes", o, len(snap.Stack))
		}
		if o := tr.LookUnstopped(p.PID, Hint{}, new(look.Look)); o != Zombie {
			t.Errorf("leader, unstopped: %v", o)
		}
	})
}

func TestGone(t *testing.T) {
	p := ctest.Run(t, ctest.Spin)
	onTracer(t, p.PID, func(tr *Tracer) {
		for _, tid := range []int{1 << 22, os.Getpid()} { // a number of no thread, and goprof's own
			if _, o := lookPatiently(tr, tid, 0); o != ThreadGone && o != NotPermitted {
				t.Errorf("tid %d: %v", tid, o)
			}
		}
		p.Process.Kill()
		ctest.Eventually(t, "ended, not reaped", func() bool { return ctest.State(p.PID, p.PID) == 'Z' })
		if _, o := lookPatiently(tr, p.PID, 0); o != ProcessGone {
			t.Errorf("a zombie process: %v", o)
		}
		p.Wait()
		if _, o := lookPatiently(tr, p.PID, 0); o != ProcessGone {
			t.Errorf("a process that was: %v", o)
		}
	})
}

// A thread of another process is released at once. The look has no result.
func TestThreadOfAnotherProcess(t *testing.T) {
	p, other := ctest.Run(t, ctest.Spin), ctest.Run(t, ctest.Spin)
	onTracer(t, p.PID, func(tr *Tracer) {
		for range 100 {
			if _, o := lookPatiently(tr, other.PID, 0); o != ThreadGone {
				t.Fatalf("%v", o)
			}
			ctest.Eventually(t, "nothing pending", func() bool { tr.Collect(); return tr.Pending() == 0 })
		}
		if n := ctest.TracerOf(other.PID); n != 0 {
			t.Errorf("still traced by %d", n)
		}
	})
	ctest.Eventually(t, "runs on", func() bool { return ctest.State(other.PID, other.PID) == 'R' })
}

func TestNotPermitted(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to become somebody else")
	}
	p := ctest.Run(t, ctest.Spin)
	OnOwnThread(func() {
		tr := NewTracer(p.PID, ctest.CPU())
		defer tr.Close()
		// This changes only this OS thread, which ends with the test.
		if _, _, e := syscall.RawSyscall(unix.SYS_SETRESUID, 65534, 65534, 65534); e != 0 {
			t.Skipf("this machine lets root become nobody else: %v", e)
		}
		if o := tr.Look(p.PID, Hint{}, new(look.Look)); o != NotPermitted {
			t.Errorf("%v", o)
		}
	})
}

func TestWrongThread(t *testing.T) {
	p := ctest.Run(t, ctest.Spin)
	onTracer(t, p.PID, func(tr *Tracer) {
		lookPatiently(tr, p.PID, 0)
		OnOwnThread(func() {
			if o := tr.Look(p.PID, Hint{}, new(look.Look)); o != WrongThread {
				t.Errorf("%v", o)
			}
			if _, o, ok := tr.Collect(); ok || o != WrongThread {
				t.Errorf("collect: %v", o)
			}
		})
	})
}

func TestThreadsThatEndDuringTheLook(t *testing.T) {
	p := ctest.Run(t, ctest.Churn)
	var seen [NumOutcomes]int
	onTracer(t, p.PID, func(tr *Tracer) {
		snap := new(look.Look)
		for seen[Taken] < ctest.Rounds(3000) || seen[ThreadGone] < ctest.Rounds(20) {
			var tids []int
			tr.proc.Threads(func(tid int) { tids = append(tids, tid) })
			for _, tid := range tids {
				o := tr.Look(tid, Hint{}, snap)
				seen[o]++
				if o == Pending {
					snap = new(look.Look)
				}
				for {
					_, o, ok := tr.Collect()
					if !ok {
						break
					}
					seen[o]++
				}
			}
			time.Sleep(100 * time.Microsecond) // the program shares the CPUs of the test
		}
		ctest.Eventually(t, "all collected", func() bool { tr.Collect(); return tr.Pending() == 0 })
		ctest.Eventually(t, "all reads have come back", func() bool {
			for tid := range tr.silentThreads {
				tr.leavesAlone(tid)
			}
			return tr.lateReads == 0
		})
	})
	for o, n := range seen {
		switch Outcome(o) {
		case Taken, ThreadGone, Pending, Backlog: // Backlog: the thread was looked at while its stop was pending
		// The thread had no CPU for a while, and held the lock of its memory: it was making a stack or giving one back. Or
		// this OS thread had none.
		case ReadLate:
		default:
			if n > 0 && (o != int(Missed) || os.Getenv("GOPROF_SLOW") == "") {
				t.Errorf("%d looks: %v", n, Outcome(o))
			}
		}
	}
	p.In.Write([]byte("x"))
	if n := p.Number(t); n < seen[ThreadGone] {
		t.Errorf("%d threads were made, %d looks saw one end", n, seen[ThreadGone])
	}
	if err := p.Wait(); err != nil { // the program could end, so no zombie was left unreaped
		t.Error(err)
	}
}

// execProgram executes itself anew from a second thread, over and over. It prints how often it did so.
const execProgram = `
static char **args;
static void *again(void *x) {
	char n[20];
	for (volatile int i = 0; i < 100000; i++);
	snprintf(n, sizeof n, "%d", atoi(args[1]) - 1);
	execl("/proc/self/exe", args[0], n, "again", (char *)0);
	return 0;
}
static void *idle(void *x) { for (volatile long i = 0;; i++); }
int main(int argc, char **argv) {
	pthread_t t;
	args = argv;
	int n = atoi(argv[1]);
	if (argc == 2) { ready(); char c; read(0, &c, 1); }
	if (n == 0) { say(0); for (volatile long i = 0;; i++); }
	pthread_create(&t, 0, idle, 0);
	pthread_create(&t, 0, again, 0);
	for (volatile long i = 0;; i++);
}`

func TestExecDuringTheLook(t *testing.T) {
	needHandler(t) // it reaps threads that an exec waits for
	execs := ctest.Rounds(300)
	p := ctest.Run(t, execProgram, strconv.Itoa(execs))
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		p.Out.ReadString('\n')
	}()
	p.In.Write([]byte("x"))
	looks := 0
	onTracer(t, p.PID, func(tr *Tracer) {
		snap := new(look.Look)
		for {
			var tids []int
			tr.proc.Threads(func(tid int) { tids = append(tids, tid) })
			for _, tid := range tids {
				for _, _, ok := tr.Collect(); ok; _, _, ok = tr.Collect() {
				}
				if tr.Look(tid, Hint{}, snap) == Pending {
					snap = new(look.Look)
				}
				looks++
			}
			select {
			case <-finished:
				ctest.Eventually(t, "all collected", func() bool { tr.Collect(); return tr.Pending() == 0 })
				return
			default:
			}
			// Without a break, a thread that shares the tracing thread's CPU is told to stop again before it has run
			// one instruction.
			time.Sleep(100 * time.Microsecond)
		}
	})
	ctest.Eventually(t, "runs on", func() bool { return ctest.State(p.PID, p.PID) == 'R' && ctest.TracerOf(p.PID) == 0 })
	t.Logf("%d looks during %d execs", looks, execs)
}

// TestKilledTracer kills a process that takes samples, at random moments. The target runs on.
func TestKilledTracer(t *testing.T) {
	p := ctest.Run(t, ctest.Spin)
	for i := range ctest.Rounds(150) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestHelperTracer$")
		cmd.Env = append(os.Environ(), "SAMPLER_TRACE="+strconv.Itoa(p.PID))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var one [1]byte
		out.Read(one[:]) // the child has begun
		time.Sleep(time.Duration(i*37%1000) * time.Microsecond)
		cmd.Process.Kill()
		cmd.Wait()
		ctest.Eventually(t, "runs on", func() bool {
			s := ctest.State(p.PID, p.PID)
			return s == 'R' && ctest.TracerOf(p.PID) == 0
		})
	}
}

// TestHelperTracer is not a test: TestKilledTracer runs it in a process of its own.
func TestHelperTracer(t *testing.T) {
	pid, _ := strconv.Atoi(os.Getenv("SAMPLER_TRACE"))
	if pid == 0 {
		t.Skip("run by TestKilledTracer")
	}
	onTracer(t, pid, func(tr *Tracer) {
		snap := new(look.Look)
		fmt.Print("x")
		for {
			if tr.Look(pid, Hint{}, snap) == Pending {
				snap = new(look.Look)
			}
			tr.Collect()
		}
	})
}
