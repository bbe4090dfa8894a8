//go:build linux

package oracle

import (
	"fmt"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// wokenSink sums up the waits of the threads of truth.Wakers, and what ended them.
type wokenSink struct {
	allocatedSink
	of map[string]*woken // by thread
}

// woken is what a recording has of the waits of one thread.
type woken struct {
	all, right, slept            time.Duration
	waits, rightWaits, stackless int64
	wrong                        map[string]time.Duration
}

func (s *wokenSink) Sample(sample *profile.Sample) {
	at := sample.Stack.StateAt()
	name := sample.Thread.JavaName
	kind, _, waits := strings.Cut(name, "-waits-")
	if at < 0 || !waits || !slices.ContainsFunc(sample.Stack.Frames[at:], func(f profile.Frame) bool {
		return strings.HasPrefix(f.Func.Name, "truth.Wakers.await") && f.Func.Name != "truth.Wakers.await"
	}) {
		return
	}
	w := s.of[name]
	if w == nil {
		w = &woken{wrong: map[string]time.Duration{}}
		s.of[name] = w
	}
	w.all += sample.Span
	if at == 0 || !slices.Contains(waitsAs[kind], sample.State) { // its CPU was taken; for a lock of the JVM's own
		return
	}
	w.slept, w.waits = w.slept+sample.Span, w.waits+sample.Looks()
	by := sample.Stack.Frames[:at]
	if len(by) == 3 && strings.HasPrefix(by[1].Func.Name, "[truncated: ") {
		w.stackless += sample.Looks()
	}
	if isRightWaker(kind, strings.Replace(name, "-waits-", "-wakes-", 1), by) ||
		isSafepoint(sample.Stack.Frames[at:], by) {
		w.right, w.rightWaits = w.right+sample.Span, w.rightWaits+sample.Looks()
	} else {
		text := ""
		for _, f := range by {
			text += f.Func.Name + " < "
		}
		w.wrong[text] += sample.Span
	}
}

// waitsAs are the states in which the kinds of truth.Wakers wait.
var waitsAs = map[string][]profile.State{"monitor": {profile.Waiting, profile.Blocked}, "enter": {profile.Blocked},
	"unpark": {profile.Parked}, "queue": {profile.Parked}, "virtual": {profile.Parked}, "sleep": {profile.Sleeping},
	"socket": {profile.Socket, profile.File}}

// isRightWaker reports whether frames are those of the thread that wakes a kind's thread, or of what does. There may be
// no stack between the thread and the wait.
func isRightWaker(kind, thread string, by []profile.Frame) bool {
	only := by[len(by)-1].Func.Name
	switch kind {
	case "sleep":
		return strings.HasPrefix(only, "[woken by: timer (")
	case "socket": // the kernel may put off what was sent until another softirq
		return only == profile.WakerFrame(fmt.Sprintf("%s pid=%d", commOfTest(), os.Getpid())) ||
			strings.HasPrefix(only, "[woken by: network (")
	case "enter": // before 24 one thread that waits for a monitor looks now and then (ObjectMonitor::EnterI)
		if strings.HasPrefix(only, "[woken by: timer (") {
			return true
		}
	case "virtual":
		kind = "queue"
		if strings.HasPrefix(by[0].Func.Name, "[virtual #?]") { // its frames in the heap, and its name, were read too late
			thread = "virtual"
		} else if len(by) == 3 && strings.HasPrefix(by[0].Func.Name, "[ForkJoinPool-1-worker-") {
			return true // without a stack, the carrier is known
		}
	}
	wakes := "truth.Wakers.wake" + strings.ToUpper(kind[:1]) + kind[1:]
	return only == profile.WokenBy && strings.HasPrefix(by[0].Func.Name, "["+thread+" ") &&
		(len(by) == 3 || slices.ContainsFunc(by, func(f profile.Frame) bool { return f.Func.Name == wakes }))
}

// isSafepoint reports whether a thread waited until a safepoint was over, and the VM thread ended that.
func isSafepoint(wait, by []profile.Frame) bool {
	return strings.HasPrefix(by[0].Func.Name, "[VM Thread ") && slices.ContainsFunc(wait, func(f profile.Frame) bool {
		return strings.Contains(f.Func.Name, "Safepoint") || strings.Contains(f.Func.Name, "WaitBarrier")
	})
}

// commOfTest is the kernel's name of the test's threads.
func commOfTest() string {
	b, _ := os.ReadFile("/proc/self/comm")
	return strings.TrimSpace(string(b))
}

// TestWakers: of each wait it is known what ended it, as the program says: another thread and its method, the timer, or
// another process.
func TestWakers(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		go writeSlowly(listener)
		jvm := jvmtest.Start(t, jdk, "truth.Wakers", "-XX:CompileCommand=quiet",
			"-XX:CompileCommand=dontinline,truth.Wakers::wake*", "--", fmt.Sprint(listener.Addr().(*net.TCPAddr).Port))
		if err := session.TryWakers(jvm.PID); err != nil {
			t.Skipf("the kernel notes no wake-ups here: %v", err)
		}
		length := "1500"
		if longForm {
			length = "10000"
			if n := envNumber("GOPROF_OVERLOAD", 0); n > 0 {
				overload(t, n, time.Minute)
			}
		}
		jvm.Command("wait 300") // what is new is compiled
		again(t, func(t testing.TB) {
			sink := &wokenSink{allocatedSink{last: map[string]uint64{}}, map[string]*woken{}}
			var told []string
			sum := recordSwitches(t, jvm, session.RecordOptions{Sink: sink, Wakers: true}, func() {
				time.Sleep(time.Second / 2) // until wake-ups are noted
				told = jvm.Command("wait " + length)
			})
			t.Logf("%v: %+v, %+v, lost %v", jdk, *sum.Switches, sum.Wakers, sum.LostBy)
			slack, off := timeSlack(&sum)
			checkWakers(t, sink, told, slack, off)
		})
	})
}

// writeSlowly writes a byte to each connection every 15 ms.
func writeSlowly(listener net.Listener) {
	for {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			for err := error(nil); err == nil; _, err = c.Write([]byte{7}) {
				time.Sleep(15 * time.Millisecond)
			}
		}()
	}
}

// timeSlack is how far the time of one thread may be off: a part of it, and a time. Waits are lost on a busy machine,
// and records are: the account says how many, and for how long. Of many short waits some stand for others, by lot. The
// error that this has for a thread is Switches.Limit (offcpu.thinning). It is spread as the time until the next wait
// that counts: one thread in 160,000 is off by more than twelve times that.
func timeSlack(sum *profile.Summary) (slack float64, off time.Duration) {
	slack = 2 * float64(sum.Lost-sum.LostBy[profile.RingFull.String()]) / float64(sum.Attempted)
	if off = sum.Switches.Missed; sum.Switches.Thinned > 0 {
		off += 12 * sum.Switches.Limit
	}
	return slack, off
}

func checkWakers(t testing.TB, sink *wokenSink, told []string, slack float64, by time.Duration) {
	t.Helper()
	least, exact := 0.9, 0.1+slack
	if longForm {
		least, exact = 0.99, 0.01+slack
	}
	var offs []float64
	for _, line := range told {
		var name string
		var waits, nanos int64
		fmt.Sscan(line, &name, &waits, &nanos)
		w := sink.of[name]
		if w == nil {
			t.Errorf("%s: no waits", name)
			continue
		}
		off := float64(w.all)/float64(nanos) - 1
		offs = append(offs, math.Abs(off))
		right, rightWaits := float64(w.right)/float64(w.slept), float64(w.rightWaits)/float64(w.waits)
		t.Logf("%-16s %5d waits, %v; the recording: %5d, %v (%+.2f %%); right waker: %.2f %% of them, %.2f %% of the time, "+
			"%d without a stack", name, waits, time.Duration(nanos), w.waits, w.all, 100*off, 100*rightWaits, 100*right,
			w.stackless)
		for by, d := range w.wrong {
			t.Logf("   %v: %s", d, by)
		}
		if right < least || rightWaits < least || float64(w.stackless) > 0.1*float64(w.waits) {
			t.Errorf("%s: wrong wakers", name)
		}
		if math.Abs(off) > exact+float64(by)/float64(nanos) {
			t.Errorf("%s: %v, the program says %v", name, w.all, time.Duration(nanos))
		}
	}
	slices.Sort(offs)
	t.Logf("median of the deviations: %.2f %%", 100*offs[len(offs)/2])
}
