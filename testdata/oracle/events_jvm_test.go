//go:build linux

package oracle

import (
	"bufio"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// copies is how often truth.Reconsidered does what it does.
const copies = 20

// reconsideredOptions have C2 compile a method at a known call, and the loop with these calls not at all.
var reconsideredOptions = []string{"-Xbatch", "-XX:-TieredCompilation", "-XX:CompileCommand=quiet",
	"-XX:CompileCommand=exclude,truth.Reconsidered::reconsider"}

// TestDeopts: frames that HotSpot turns into interpreted ones are counted to the piece, those that come to code which
// C2 has left out and those whose code is not right any more. The first are as many as the JVM's own log has, where it
// has them.
func TestDeopts(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		options, log := reconsideredOptions, filepath.Join(t.TempDir(), "deopts.log")
		if jdk.Version >= 21 {
			options = append([]string{"-Xlog:deoptimization=debug:file=" + log}, options...)
		}
		jvm := jvmtest.Start(t, jdk, "truth.Reconsidered", options...)
		s := attach(t, jvm.PID)
		p, sum := recordEvent(t, s, findEvent(t, s, "deopt", 0), func() { jvm.Command(fmt.Sprint(copies)) })
		checkCopied(t, &sum, copiedLeaves(p), map[string]int64{"surprised": copies, "outlived": copies})
		if jdk.Version < 21 {
			return
		}
		if in := copiedInLog(t, log); !maps.Equal(in, map[string]int64{"surprised": copies}) {
			t.Errorf("the JVM has logged %v", in)
		}
	})
}

// TestCompiles: methods that are compiled have their names, and are as many as the JVM's own log has.
func TestCompiles(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		if jdk.Version < 9 {
			t.Skip("before 9 HotSpot had no such log")
		}
		log := filepath.Join(t.TempDir(), "compiles.log")
		jvm := jvmtest.Start(t, jdk, "truth.Reconsidered",
			append([]string{"-Xlog:jit+compilation=debug:file=" + log}, reconsideredOptions...)...)
		s := attach(t, jvm.PID)
		p, sum := recordEvent(t, s, findEvent(t, s, "compile", 0), func() { jvm.Command(fmt.Sprint(copies)) })
		want := copiedInLog(t, log)
		if want["surprised"] < copies || want["outlived"] < copies {
			t.Fatalf("the JVM has compiled %v", want)
		}
		checkCopied(t, &sum, copiedLeaves(p), want)
	})
}

// copiedLeaves is how often methods of truth.Reconsidered$CopiedWork are leaves.
func copiedLeaves(p *profile.Profile) map[string]int64 {
	seen := map[string]int64{}
	p.EachLine(func(f *profile.Func, _ profile.Kind) string { return f.Name }, func(path []string, n int64) {
		if name, ok := strings.CutPrefix(path[len(path)-1], "truth.Reconsidered$CopiedWork."); ok {
			seen[name] += n
		}
	})
	return seen
}

// copiedMethod is such a method in HotSpot's logs: "truth.Reconsidered$CopiedWork::surprised (24 bytes)",
// "truth.Reconsidered$CopiedWork.surprised(Z)I".
var copiedMethod = regexp.MustCompile(`truth\.Reconsidered\$CopiedWork(?:\.|::)([\w<>]+)`)

// copiedInLog is how often a log has them. That code is given up is a line, too.
func copiedInLog(t *testing.T, log string) map[string]int64 {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		if m := copiedMethod.FindStringSubmatch(line); m != nil && !strings.Contains(line, "made not entrant") {
			seen[m[1]]++
		}
	}
	return seen
}

// checkCopied demands equal numbers, but for what was lost.
func checkCopied(t *testing.T, sum *profile.Summary, seen, want map[string]int64) {
	t.Helper()
	hits, unseen := int64(0), sum.Lost
	for _, e := range sum.Events { // one for each function
		hits, unseen = hits+e.Hits, unseen+e.Missed
	}
	t.Logf("%v, there were %v; %d hits, %d missed or lost (%v)", seen, want, hits, unseen, sum.LostBy)
	if hits != sum.Samples+unseen {
		t.Errorf("%d hits, %d samples, %d missed or lost", hits, sum.Samples, unseen)
	}
	if unseen == 0 && !maps.Equal(seen, want) {
		t.Errorf("%v, there were %v", seen, want)
	}
	for name, n := range want {
		if seen[name] > n || seen[name]+unseen < n {
			t.Errorf("%s: %d, there were %d; %d missed or lost", name, seen[name], n, unseen)
		}
	}
}

// TestMaps: what a program maps has as many bytes as the kernel says, to the byte.
func TestMaps(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Happenings")
		s := attach(t, jvm.PID)
		plan := findEvent(t, s, "mmap", 1)
		jvm.Command("maps 50 1000000")
		before := mappedBytes(t, jvm.PID)
		p, sum := recordEvent(t, s, plan, func() { jvm.Command("maps 200 1000") })
		want, seen := mappedBytes(t, jvm.PID)-before, int64(0)
		p.EachLine(func(f *profile.Func, _ profile.Kind) string { return f.Name }, func(path []string, n int64) {
			for _, name := range path {
				if name == "truth.Happenings.map" {
					seen += n
					break
				}
			}
		})
		e, unseen := sum.Events[0], sum.Events[0].Missed+sum.Lost
		t.Logf("%d bytes, the kernel says %d; %d hits, %d missed, lost %v", seen, want, e.Hits, e.Missed, sum.LostBy)
		const most = 7 * 4096 // bytes of a piece
		if want < 200*4096 || seen > want || seen+unseen*most < want {
			t.Errorf("%d bytes, the kernel says %d; %d are missed or lost", seen, want, unseen)
		}
	})
}

// mappedBytes is how much of its file truth.Happenings has mapped.
func mappedBytes(t *testing.T, pid int) (n int64) {
	t.Helper()
	file, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var from, to int64
		if strings.Contains(lines.Text(), ".mapped") {
			fmt.Sscanf(lines.Text(), "%x-%x", &from, &to)
			n += to - from
		}
	}
	return n
}

// TestLeaks: of pieces of malloc those are left that the program has not given back, to the byte, old ones apart from
// young ones.
func TestLeaks(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Happenings")
		s := attach(t, jvm.PID)
		findEvent(t, s, profile.EventLeak, 1)
		jvm.Command("mallocs 100 1000") // the compilers are done with it
		again(t, func(t testing.TB) { leaksOnce(t, jvm, s) })
	})
}

func leaksOnce(t testing.TB, jvm *jvmtest.JVM, s *session.Session) {
	plan := findEvent(t, s, profile.EventLeak, 1)
	defer plan.Close()
	p, sum := recordEvent(t, s, plan, func() {
		began := time.Now()
		jvm.Command("mallocs 800 1000")
		time.Sleep(time.Second + 2*time.Since(began))
		jvm.Command("mallocs 500 1000")
	})
	got := map[string]int64{}
	p.EachLine(func(f *profile.Func, _ profile.Kind) string { return f.Name }, func(path []string, n int64) {
		for _, name := range path {
			if method, ok := strings.CutPrefix(name, "truth.Happenings."); ok && method != "main" {
				got[path[0]+" "+method] += n
			}
		}
	})
	t.Logf("%v %+v %+v", got, *sum.Unfreed, sum.Events[0])
	// The JVM itself allocates for the first calls, and keeps that: jvmOwn. Where samples had to become fewer, sums are
	// right on the average.
	const jvmOwn, all = 5000, 1300 * 1000
	fewer := 0.0
	if sum.Events[0].Interval > 1 {
		fewer = 0.3
	}
	for place, bytes := range map[string]int64{"[old] leak": 80 * 1000, "[young] leak": 50 * 1000, "[old] passing": 0,
		"[young] passing": 0} {
		near := jvmOwn + float64(sum.Unfreed.NoStack.Bytes) + fewer*float64(bytes)
		if math.Abs(float64(got[place]-bytes)) > near {
			t.Errorf("%s: %d bytes, there are %d", place, got[place], bytes)
		}
	}
	if sum.Unfreed.Unended > 0 || sum.Events[0].Amount < all {
		t.Errorf("%d bytes of calls were met, of %d or more", sum.Events[0].Amount, all)
	}
}
