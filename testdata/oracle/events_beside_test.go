//go:build linux

package oracle

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/testdata/jvmtest"
)

// async is async-profiler, as a JVM loads it.
type async struct {
	t                 *testing.T
	jvm               *jvmtest.JVM
	library, log, dir string
}

// loadAsync takes the library out of its jar.
func loadAsync(t *testing.T, jars string, jvm *jvmtest.JVM) *async {
	dir := t.TempDir()
	return &async{t, jvm, jvmtest.AsyncProfiler(t, jars), filepath.Join(dir, "log"), dir}
}

func (a *async) start(event string) {
	a.t.Helper()
	a.command("start," + event)
}

// stop ends the recording. It returns what each stack counts in the event's own unit, root first.
func (a *async) stop() map[string]int64 {
	a.t.Helper()
	out := filepath.Join(a.dir, "out.collapsed")
	a.command("stop,collapsed,total,dot,file=" + out)
	text, err := os.ReadFile(out)
	if err != nil {
		log, _ := os.ReadFile(a.log)
		a.t.Fatalf("%v\n%s", err, log)
	}
	return jvmtest.Stacks(a.t, string(text))
}

// command has the JVM load the library, which then does what its option says. What it has to tell would come between
// the program's answers.
func (a *async) command(option string) {
	a.t.Helper()
	jcmd(a.t, a.jvm.JDK, a.jvm.PID, "JVMTI.agent_load", a.library, `"`+option+",log="+a.log+`"`)
}

// besideJDK is a JDK with which truth.Allocating and truth.Waiting run beside async-profiler.
func besideJDK(t *testing.T, test func(t *testing.T, jars string, jdk jvmtest.JDK)) {
	jars, _ := jvmtest.Readers(t)
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		if jdk.Version < 11 {
			t.Skip("JDKs before 9 have no jcmd JVMTI.agent_load, and before 11 no sampled allocations")
		}
		test(t, jars, jdk)
	})
}

// TestAllocBesideAsync: goprof and async-profiler sample the same allocations at the same time. Both put places and
// classes into the order in which the program has them.
func TestAllocBesideAsync(t *testing.T) {
	besideJDK(t, func(t *testing.T, jars string, jdk jvmtest.JDK) {
		// As many samples as async-profiler has need buffers that are as small as its interval.
		jvm := jvmtest.Start(t, jdk, "truth.Allocating", "-Xmx256m", "-XX:TLABSize=128k", "-XX:-ResizeTLAB", "--",
			"200000000", "2")
		s := attach(t, jvm.PID)
		library := loadAsync(t, jars, jvm)
		plan := findEvent(t, s, "alloc", 128<<10)
		var theirs map[string]int64
		p, sum := recordEvent(t, s, plan, func() {
			library.start("event=alloc,alloc=128k")
			time.Sleep(5 * time.Second)
			theirs = library.stop()
		})
		ours := map[string]int64{}
		p.EachLine(func(f *profile.Func, _ profile.Kind) string { return f.Name }, func(path []string, n int64) {
			ours[strings.Join(path, ";")] += n
		})
		t.Logf("%d samples of ours", sum.Samples)
		for _, c := range []struct {
			name   string
			stacks map[string]int64
		}{{"goprof", ours}, {"async-profiler", theirs}} {
			places, classes := map[string]int64{}, map[string]int64{}
			for stack, n := range c.stacks {
				path := strings.Split(stack, ";")
				if place := allocPlace(path); place != "" {
					places[place] += n
					classes[path[len(path)-1]] += n
				}
			}
			t.Logf("%s: %s", c.name, percents(places))
			t.Logf("%s: %s", c.name, percents(classes))
			checkOrder(t, c.name, places, "bytes", "longs", "texts", "holders")
			checkOrder(t, c.name, classes, "byte[]", "long[]", "java.lang.String[]", "truth.Allocating$Holder",
				"java.lang.String[][]")
		}
	})
}

// checkOrder holds names with their numbers against the order that is right, the largest first.
func checkOrder(t *testing.T, who string, seen map[string]int64, right ...string) {
	t.Helper()
	if names := byNumber(seen); !slices.Equal(names, right) {
		t.Errorf("%s: the order is %q, not %q", who, names, right)
	}
}

// percents says what part of all each name has.
func percents(numbers map[string]int64) string {
	all := int64(0)
	for _, n := range numbers {
		all += n
	}
	var b strings.Builder
	for _, name := range byNumber(numbers) {
		fmt.Fprintf(&b, "%s %.2f %% ", name, 100*float64(numbers[name])/float64(all))
	}
	return b.String()
}

// byNumber sorts names by their numbers, the largest first.
func byNumber(numbers map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(numbers), func(a, b string) int { return int(numbers[b] - numbers[a]) })
}

// TestAllocSlowdown: what sampling costs the threads that allocate, in bytes that they allocate in a second of their
// CPU time, beside async-profiler. The two take turns with nobody, in one JVM. GOPROF_OVERLOAD is how many busy threads
// of another process want the CPUs, too.
func TestAllocSlowdown(t *testing.T) {
	if !longForm {
		t.Skip("a measurement: set GOPROF_PROVE=1")
	}
	besideJDK(t, func(t *testing.T, jars string, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Allocating", "-Xmx256m", "--", "1000000000000", "2")
		s := attach(t, jvm.PID)
		library := loadAsync(t, jars, jvm)
		if n := envNumber("GOPROF_OVERLOAD", 0); n > 0 {
			overload(t, n, 5*time.Minute)
		}
		var speed float64
		turn := func() {
			bytes, ran := allocated(t, jvm), number(t, jvm, "charged")
			time.Sleep(time.Second)
			speed = float64(allocated(t, jvm)-bytes) / float64(number(t, jvm, "charged")-ran)
		}
		turns := map[string]func(){
			"nobody": turn,
			"goprof": func() {
				plan := findEvent(t, s, "alloc", 0)
				defer plan.Close()
				recordEvent(t, s, plan, turn)
			},
			"async-profiler": func() {
				library.start("event=alloc,alloc=512k")
				defer library.stop()
				turn()
			},
		}
		speeds := map[string][]float64{}
		const rounds = 15
		for range rounds {
			round := map[string]float64{}
			for name, do := range turns { // in any order
				do()
				round[name] = speed
			}
			for name := range turns {
				speeds[name] = append(speeds[name], round[name]/round["nobody"])
			}
		}
		for name, list := range speeds {
			slices.Sort(list)
			t.Logf("%v: %s: %.3f of the bytes in a second of CPU time (quarters %.3f to %.3f)", jdk, name, list[rounds/2],
				list[rounds/4], list[rounds*3/4])
		}
		// Two medians may differ by half of what the middle half of the rounds does: that is chance.
		ours, others := speeds["goprof"], speeds["async-profiler"]
		if ours[rounds/2] < others[rounds/4] {
			t.Errorf("goprof slows the program down to %.3f, async-profiler to %.3f", ours[rounds/2], others[rounds/2])
		}
	})
}

// TestWaitsBesideOthers: goprof, async-profiler and the JDK's recorder time the same waits for locks at the same time,
// and the program does. In the long form goprof is within 3 % of them, but for waits that were over before it could ask
// for their class.
func TestWaitsBesideOthers(t *testing.T) {
	besideJDK(t, func(t *testing.T, jars string, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Waiting")
		jvm.Command("begin")
		library, file := loadAsync(t, jars, jvm), filepath.Join(t.TempDir(), "waits.jfr")
		length := "3000"
		if longForm {
			length = "10000"
		}
		var told map[string]lockTime
		var stacks map[string]int64
		sum, sink := recordWaits(t, jvm, func() {
			library.start("event=lock,lock=1")
			jcmd(t, jdk, jvm.PID, "JFR.start", "name=waits", "settings="+jfrWaits(t))
			told = waitForLocks(jvm, length)
			jcmd(t, jdk, jvm.PID, "JFR.stop", "name=waits", "filename="+file)
			stacks = library.stop()
		})
		theirs, jfr := map[string]time.Duration{}, jfrLockTimes(t, jdk, file)
		for stack, n := range stacks {
			theirs[stack[strings.LastIndexByte(stack, ';')+1:]] += time.Duration(n)
		}
		t.Logf("%v: %d waits, lost %v", jdk, sum.Switches.Waits, sum.LostBy)
		for name, want := range told {
			leaf := waitingLeaves[name]
			class := strings.TrimSuffix(leaf[strings.Index(leaf, ": ")+2:], "]")
			t.Logf("%v: %s: the program waited for %v, %v of it off a CPU; goprof %v, async-profiler %v, JFR %v", jdk, name,
				want.clock, want.off, sink.leaves[leaf], theirs[class], jfr[class])
			state, _, _ := strings.Cut(leaf, ":")
			got, nameless := sink.leaves[leaf], sink.inside[[2]string{name, state + "]"}]
			fits := lockTimeFits(got, nameless, theirs[class])
			if longForm { // async-profiler counts by the clock, also what a thread waits for a CPU
				fits = got <= theirs[class]*103/100 && got+nameless >= want.off*97/100
			}
			if jfr[class] == 0 || !fits {
				t.Errorf("%s: goprof %v, and %v without a class; async-profiler %v, JFR %v", name, got, nameless,
					theirs[class], jfr[class])
			}
		}
	})
}

// jfrWaits makes settings by which JFR notes each wait for a lock.
func jfrWaits(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><configuration version="2.0">`)
	for _, event := range []string{"jdk.JavaMonitorEnter", "jdk.ThreadPark"} {
		b.WriteString(`<event name="` + event + `"><setting name="enabled">true</setting>` +
			`<setting name="threshold">0 ms</setting></event>`)
	}
	b.WriteString(`</configuration>`)
	name := filepath.Join(t.TempDir(), "waits.jfc")
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// jfrWait is a line of "jfr print" on the events of jfrWaits: "duration = 7.98 ms", "monitorClass = truth.Waiting$Cache
// (classLoader = app)".
var jfrWait = regexp.MustCompile(`(duration|monitorClass|parkedClass) = (\S+)(?: (s|ms|us|ns)\b)?`)

// jfrLockTimes sums up the waits of a recording by the lock's class.
func jfrLockTimes(t *testing.T, jdk jvmtest.JDK, file string) map[string]time.Duration {
	t.Helper()
	times, last := map[string]time.Duration{}, time.Duration(0)
	out := jvmtest.JFRTool(t, jdk, "print", "--events", "JavaMonitorEnter,ThreadPark", file)
	for _, m := range jfrWait.FindAllStringSubmatch(out, -1) {
		if m[1] != "duration" {
			times[m[2]] += last
			continue
		}
		d, err := time.ParseDuration(m[2] + m[3])
		if err != nil {
			t.Fatalf("%q: %v", m[0], err)
		}
		last = d
	}
	return times
}

// TestLeaksBesideAsync: of one program at the same time goprof and async-profiler's nativemem name what malloc has
// given out and nobody has freed. Then each takes its turn with nobody, and a pair of malloc and free takes so long.
func TestLeaksBesideAsync(t *testing.T) {
	besideJDK(t, func(t *testing.T, jars string, jdk jvmtest.JDK) {
		const pieces, size = 2000, 1000
		jvm := jvmtest.Start(t, jdk, "truth.Happenings")
		s := attach(t, jvm.PID)
		library := loadAsync(t, jars, jvm)
		recording := filepath.Join(library.dir, "leaks.jfr")
		jvm.Command("mallocs 100 1000")
		// It allocates much when it starts. goprof would remove its probes, or let a sample stand for more, before the
		// program's own calls.
		library.start("nativemem=1,jfr,file=" + recording)
		plan := findEvent(t, s, profile.EventLeak, 1)
		p, _ := recordEvent(t, s, plan, func() { jvm.Command(fmt.Sprintf("mallocs %d 1000", pieces)) })
		library.command("stop")
		ours := map[string]int64{}
		p.EachLine(func(f *profile.Func, _ profile.Kind) string { return f.Name }, func(path []string, n int64) {
			ours[strings.Join(path, ";")] += n
		})
		theirs := jvmtest.Converted(t, jars, jdk, recording, "--nativemem", "--leak", "--tail", "0", "--total")
		for name, stacks := range map[string]map[string]int64{"goprof": ours, "async-profiler": theirs} {
			leak, passing := bytesBelow(stacks, "leak"), bytesBelow(stacks, "passing")
			t.Logf("%v: %s: %d bytes below leak, %d below passing; %d and 0 are true", jdk, name, leak, passing,
				pieces/10*size)
			// goprof may let a sample stand for more than one byte at the beginning. The JVM's own memory counts, too.
			if leak < pieces/10*size*9/10 || leak > pieces/10*size*11/10 || passing > pieces*size/10 {
				t.Errorf("%s: %d bytes below leak, %d below passing", name, leak, passing)
			}
		}
		pair := func() time.Duration { // CPU time of the thread; the shortest of some: others use the CPUs, too
			took := []time.Duration{}
			for range 5 {
				began := ranMain(t, jvm.PID)
				jvm.Command(fmt.Sprintf("mallocs %d 1000000000", pieces))
				took = append(took, (ranMain(t, jvm.PID)-began)/pieces)
			}
			return slices.Min(took)
		}
		jvm.Command("mallocs 200000 1000000000") // the compilers are done with it
		var goprof, async time.Duration
		alone := pair()
		recordEvent(t, s, findEvent(t, s, profile.EventLeak, 0), func() { goprof = pair() })
		library.start("nativemem=512k,jfr,file=" + recording)
		async = pair()
		library.command("stop")
		alone = min(alone, pair())
		t.Logf("%v: a pair takes %v with nobody, %v (%.1f times) with goprof, %v (%.1f times) with async-profiler", jdk,
			alone, goprof, float64(goprof)/float64(alone), async, float64(async)/float64(alone))
	})
}

// ranMain is the CPU time of the thread of main, which java's launcher makes.
func ranMain(t *testing.T, pid int) (ran time.Duration) {
	t.Helper()
	all, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/comm", pid))
	for _, name := range all {
		comm, _ := os.ReadFile(name)
		if task := filepath.Dir(name); string(comm) == "java\n" && filepath.Base(task) != fmt.Sprint(pid) {
			text, _ := os.ReadFile(task + "/schedstat")
			fmt.Sscan(string(text), &ran)
		}
	}
	if ran == 0 {
		t.Fatal("there is no thread of main")
	}
	return ran
}

// bytesBelow is what stacks below a method of truth.Happenings have.
func bytesBelow(stacks map[string]int64, method string) (n int64) {
	for stack, bytes := range stacks {
		if slices.Contains(strings.Split(stack, ";"), "truth.Happenings."+method) {
			n += bytes
		}
	}
	return n
}
