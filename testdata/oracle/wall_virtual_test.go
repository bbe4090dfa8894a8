//go:build linux

package oracle

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// TestWallVirtual: virtual threads that no carrier runs are counted where they wait, as many as the program says there
// are, before and after some of them have gone elsewhere. Their stacks are those that the JVM itself tells. Of threads
// that come and go all the time no stack is put together from two. Collections move all of them meanwhile.
func TestWallVirtual(t *testing.T) {
	t.Parallel()
	virtualJDKs(t, func(t *testing.T, jdk jvmtest.JDK) {
		type heap struct {
			flag, size string
			spinners   int
		}
		for _, c := range jvmtest.Drawn(t, 1, []heap{{"-Xmixed", "-Xmx96m", 0}, {"-XX:+UseZGC", "-Xmx512m", 0},
			{"-XX:+UseSerialGC", "-Xmx96m", 6}}) {
			t.Run(fmt.Sprint(c.flag, "-", c.spinners), func(t *testing.T) {
				const count, movers = 2000, 40
				jvm := jvmtest.Start(t, jdk, "truth.VirtualWaits", c.flag, c.size, "--", fmt.Sprint(count),
					fmt.Sprint(movers), fmt.Sprint(c.spinners))
				s := attach(t, jvm.PID)
				for _, move := range []string{"move 0", "move 500"} {
					jvm.Command(move)
					again(t, func(t testing.TB) { checkVirtualWaits(t, jvm, s, count, movers) })
				}
			})
		}
	})
}

// TestLockVirtual: a recording of waits for locks has the virtual threads that wait for one without a carrier, for as
// long as it lasts, and none of those that sleep or read.
func TestLockVirtual(t *testing.T) {
	t.Parallel()
	virtualJDKs(t, func(t *testing.T, jdk jvmtest.JDK) {
		const count = 400 // a tenth of them for the lock
		jvm := jvmtest.Start(t, jdk, "truth.VirtualWaits", "-Xmx96m", "--", fmt.Sprint(count), "0", "0")
		s := attach(t, jvm.PID)
		again(t, func(t testing.TB) { lockVirtual(t, s, count/10) })
	})
}

func lockVirtual(t testing.TB, s *session.Session, count float64) {
	ctx, cancel := context.WithTimeout(t.Context(), longEnough(1500*time.Millisecond))
	defer cancel()
	p, sum := record(t, s, ctx, session.RecordOptions{Mode: session.WaitingMode,
		Interval: 50 * time.Millisecond, Weight: profile.Samples,
		States: func(s profile.State) bool { return s == profile.Blocked || s == profile.Parked }})
	waited := map[string]float64{}
	p.Each(func(frames []profile.Frame, n int64) {
		for _, f := range frames {
			waited[f.Func.Name] += float64(n) * float64(sum.Meta.Interval) / float64(sum.Meta.Duration)
		}
	})
	if got := waited["truth.VirtualWaits.forLock"]; math.Abs(got-count) > count*0.5 ||
		waited["[parked: java.util.concurrent.locks.ReentrantLock$NonfairSync]"] == 0 {
		t.Errorf("%.1f threads wait for the lock: %v", got, waited)
	}
	if n := waited["truth.VirtualWaits.asleep"] + waited["truth.VirtualWaits.forSocket"]; n != 0 {
		fact(t).Errorf("%.1f threads that wait for no lock: %v", n, waited)
	}
}

// virtualWait is what truth.VirtualWaits says of the threads that wait for the same.
type virtualWait struct {
	method string
	state  string
	there  int
	stack  string
	seen   int64
}

// virtualWaits asks the program.
func virtualWaits(t testing.TB, jvm *jvmtest.JVM) map[string]*virtualWait {
	t.Helper()
	waits := map[string]*virtualWait{
		"latch": {method: "forLatch", state: "[parked]"}, "sleep": {method: "asleep", state: "[sleeping]"},
		"socket": {method: "forSocket", state: "[socket]"}, "lock": {method: "forLock", state: "[parked]"}}
	for _, line := range jvm.Command("counts") {
		name, n, _ := strings.Cut(line, " ")
		if _, err := fmt.Sscan(n, &waits[name].there); err != nil {
			t.Fatal(line, err)
		}
	}
	of, frames := "", map[string][]string{}
	for _, line := range jvm.Command("stacks") {
		switch word, rest, _ := strings.Cut(line, " "); word {
		case "WAIT":
			of = rest
		case "FRAME":
			frames[of] = append(frames[of], rest)
		}
	}
	for name, w := range waits {
		slices.Reverse(frames[name])
		w.stack = virtualStack(frames[name])
	}
	return waits
}

// virtualStack makes one text of a virtual thread's frames, root first: without what a stack trace of the JVM leaves
// out, and with calls of down as one.
func virtualStack(methods []string) string {
	var kept []string
	for _, m := range methods {
		if !isHidden(m) && !strings.HasPrefix(m, "jdk.internal.vm.Continuation.") &&
			!strings.Contains(m, "VThreadContinuation") && m != "java.lang.VirtualThread.yieldContinuation" &&
			(len(kept) == 0 || kept[len(kept)-1] != m) {
			kept = append(kept, m)
		}
	}
	return strings.Join(kept, "\n")
}

func checkVirtualWaits(t testing.TB, jvm *jvmtest.JVM, s *session.Session, count, movers int) {
	t.Helper()
	waits := virtualWaits(t, jvm)
	opt := session.RecordOptions{Mode: session.WallMode, Interval: 50 * time.Millisecond, Threads: true,
		Weight: profile.Samples}
	ctx, cancel := context.WithTimeout(t.Context(), longEnough(1500*time.Millisecond))
	defer cancel()
	p, sum := record(t, s, ctx, opt)
	v := sum.Virtual
	if v == nil || v.Draws < 3 || v.Error == 0 {
		t.Errorf("%+v", v)
		return
	}
	if v.Threads < float64(count) || v.Threads > float64(count+movers)*1.01 {
		t.Errorf("%.1f threads of %d that stay and %d that come and go", v.Threads, count, movers)
	}
	all, moving := int64(0), int64(0)
	p.Each(func(frames []profile.Frame, n int64) {
		var methods []string
		for _, f := range frames {
			if f.Kind.Java() {
				methods = append(methods, f.Func.Name)
			}
		}
		label, state := frames[0].Func.Name, frames[len(frames)-1].Func.Name
		cut := len(frames) > 1 && strings.HasPrefix(frames[1].Func.Name, "[truncated: ")
		switch {
		case !strings.Contains(label, " virtual #"):
		case strings.HasPrefix(label, "[mover-"):
			if cut {
				break
			}
			if moving += n; !rightPath(methods, label == "[mover-* virtual #*]") {
				fact(t).Errorf("%s: %d times no path of a mover:\n%s", label, n, strings.Join(methods, "\n"))
			}
		case cut:
			t.Errorf("%d stacks of %s are cut: %s", n, label, frames[1].Func.Name)
		default:
			all += n
			stack := virtualStack(methods)
			for _, w := range waits {
				if strings.Contains(stack, "truth.VirtualWaits."+w.method) {
					w.seen += n
					if stack != w.stack || state != w.state {
						fact(t).Errorf("%d times %s %s:\n%s\nwant %s\n%s", n, label, state, stack, w.state, w.stack)
					}
				}
			}
		}
	})
	for name, w := range waits {
		share, want := float64(w.seen)/float64(max(all, 1)), float64(w.there)/float64(count)
		if math.Abs(share-want) > 2.5*v.Error+0.002 { // five deviations
			t.Errorf("%s: %.1f %% of the threads, want %.1f %%, error %.1f points", name, 100*share, 100*want, 100*v.Error)
		}
		t.Logf("%s: %.1f %%, want %.1f %%", name, 100*share, 100*want)
	}
	if sum.Lost*20 > sum.Attempted || moving == 0 {
		t.Errorf("%d of %d looks are lost: %v; %d at movers", sum.Lost, sum.Attempted, v.Unread, moving)
	}
	t.Logf("%.1f threads, %d draws, %d looks, error %.1f points, CPU %v, lost %d of %d %v", v.Threads, v.Draws, v.Looks,
		100*v.Error, v.CPU, sum.Lost, sum.Attempted, v.Unread)
}

// rightPath reports whether a mover may have that stack. drawn: no carrier ran it, so it is at its end.
func rightPath(methods []string, drawn bool) bool {
	var path []int
	rests := false
	for _, m := range methods {
		switch m {
		case "truth.VirtualWaits.zero":
			path = append(path, 0)
		case "truth.VirtualWaits.one":
			path = append(path, 1)
		case "truth.VirtualWaits.rest":
			rests = true
		}
	}
	if !rests {
		return len(path) == 0 || !drawn
	}
	n := 0
	for _, bit := range path {
		n = n<<1 | bit
	}
	bits := n >> 4
	return len(path) == 12 && n&0xf == (bits+bits>>4)&0xf
}
