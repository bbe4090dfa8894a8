//go:build linux

package ptrace

import (
	"slices"
	"strconv"
	"testing"

	"goprof/sampler/look"
	"goprof/testdata/ctest"
)

// faultProgram raises its own SIGSEGV as often as it is told, as HotSpot does for null checks. The handler
// counts the signals, checks that the fault address came with each, and lets the access succeed.
const faultProgram = `
static char *page;
static volatile long faults, wrong;
static void on_segv(int sig, siginfo_t *si, void *ctx) {
	faults++;
	if (si->si_addr != page || si->si_code != SEGV_ACCERR) wrong++;
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
}
int main(int argc, char **argv) {
	struct sigaction sa = { .sa_sigaction = on_segv, .sa_flags = SA_SIGINFO };
	sigaction(SIGSEGV, &sa, 0);
	page = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ready();
	long made = atol(argv[1]);
	for (long i = 0; i < made; i++) {
		mprotect(page, 4096, PROT_NONE);
		*(volatile char *)page = 1;
	}
	say(made - faults);
	say(wrong);
	pause();
}`

// queueProgram sends itself as many queued signals as it is told, from another thread, each with its number. It checks
// that each comes once and in order.
const queueProgram = `
static volatile long got, wrong, made;
static void on_sig(int sig, siginfo_t *si, void *ctx) {
	if (si->si_code != SI_QUEUE || si->si_value.sival_int != got) wrong++;
	got++;
}
static pthread_t victim;
static void *sender(void *x) {
	for (int i = 0; i < made; i++) {
		union sigval v = { .sival_int = i };
		while (pthread_sigqueue(victim, SIGRTMIN + 3, v) != 0) sched_yield();
		while (got < i - 50) sched_yield();
	}
	return 0;
}
int main(int argc, char **argv) {
	made = atol(argv[1]);
	struct sigaction sa = { .sa_sigaction = on_sig, .sa_flags = SA_SIGINFO | SA_RESTART };
	sigaction(SIGRTMIN + 3, &sa, 0);
	victim = pthread_self();
	pthread_t t;
	ready();
	pthread_create(&t, 0, sender, 0);
	while (got < made) for (volatile int i = 0; i < 1000; i++);
	pthread_join(t, 0);
	say(made - got);
	say(wrong);
	pause();
}`

// lookUntilSaid looks at the leader as often as possible until the program prints a number.
func lookUntilSaid(t *testing.T, p *ctest.Program) (said int, met int64, seen [NumOutcomes]int) {
	t.Helper()
	done := make(chan int)
	go func() { done <- p.Number(t) }()
	onTracer(t, p.PID, func(tr *Tracer) {
		snap := new(look.Look)
		for {
			o := tr.Look(p.PID, Hint{}, snap)
			seen[o]++
			if o == Pending {
				snap = new(look.Look)
			}
			for _, o, ok := tr.Collect(); ok; _, o, ok = tr.Collect() {
				seen[o]++
			}
			select {
			case said = <-done:
				met = tr.Signals
				// The Runner had no CPU for a while. Or the thread had none while it held the lock of its memory, in
				// mprotect. Both are the machine's fault, and such a read returns. A read that was never begun does
				// not.
				ctest.Eventually(t, "reads have come back", func() bool { return tr.leavesAlone(p.PID) == Taken })
				seen[ReadLate] = 0
				ctest.Eventually(t, "all collected", func() bool { tr.Collect(); return tr.Pending() == 0 })
				return
			default:
			}
		}
	})
	return said, met, seen
}

func TestSignalsAreNeverLost(t *testing.T) {
	for _, c := range []struct{ name, source string }{
		{"faults", faultProgram},
		{"queued", queueProgram},
	} {
		t.Run(c.name, func(t *testing.T) {
			var met int64
			bin, signals := ctest.Compile(t, c.source), ctest.Rounds(100_000)
			var seen [NumOutcomes]int
			for round := 0; seen[Taken] < ctest.Rounds(500) || met == 0; round++ {
				if round == 30 {
					t.Fatal("no look met a signal: this proves nothing")
				}
				p := ctest.Start(t, bin, strconv.Itoa(signals))
				lost, m, s := lookUntilSaid(t, p)
				met += m
				for o, n := range s {
					seen[o] += n
				}
				if wrong := p.Number(t); lost != 0 || wrong != 0 {
					t.Fatalf("%d of %d signals lost, %d changed", lost, signals, wrong)
				}
				p.Process.Kill()
			}
			t.Logf("%d looks taken, %d met a signal, %d had to be collected", seen[Taken], met, seen[Pending])
			// On a busy machine a stop is not admitted, or is over before this goroutine has its turn.
			fine := []Outcome{Taken, Pending, Backlog, Unadmitted, Missed}
			for o, n := range seen {
				if !slices.Contains(fine, Outcome(o)) && n > 0 {
					t.Errorf("%d looks: %v", n, Outcome(o))
				}
			}
		})
	}
}
