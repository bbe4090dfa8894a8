//go:build linux

package oracle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/process/procfs"
	"goprof/profile"
	"goprof/sampler/look"
	"goprof/testdata/jvmtest"
)

const (
	places     = 27 // of truth.Places
	placeDepth = 30 // Places.DEPTH
)

// placeSeen is what was seen at one place.
type placeSeen struct {
	samples, right int
	wrong          map[string]int
}

// note counts a sample with that method on top, and reports whether it is right.
func (p *placeSeen) note(place int, top string) bool {
	p.samples++
	if strings.HasSuffix(top, fmt.Sprintf(".leaf%d", place)) {
		p.right++
		return true
	}
	if p.wrong == nil {
		p.wrong = map[string]int{}
	}
	p.wrong[top]++
	return false
}

// TestPlaces: 27 threads work at places where one method does all the work. The goal is 97 % right, without any flag of
// the JVM, and 99 % of the depths of a recursive method. GOPROF_PLACES is how many samples to take (1,000);
// GOPROF_PLACES_FULL=1 has the JVM keep full records, and shows what can be had.
func TestPlaces(t *testing.T) {
	t.Parallel()
	samples := envNumber("GOPROF_PLACES", 1000)
	var flags []string
	if envNumber("GOPROF_PLACES_FULL", 0) > 0 {
		flags = []string{"-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"}
	}
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		// What C2 makes of the program differs from JVM to JVM.
		again(t, func(t testing.TB) { placesRun(t, jdk, samples, flags) })
	})
}

func placesRun(t testing.TB, jdk jvmtest.JDK, samples int, flags []string) {
	jvm := startPlaces(t, jdk, flags...)
	defer jvm.Quit() // not beside the next try
	pid := jvm.PID
	seen, depths, deep := lookAtPlaces(t, pid, samples)
	all, right := 0, 0
	for i := range seen {
		p := &seen[i]
		all, right = all+p.samples, right+p.right
		t.Logf("place %2d: %3d of %3d right%s", i+1, p.right, p.samples, p.others())
	}
	t.Logf("all: %d of %d right, %.1f %%; %d of %d depths", right, all, 100*float64(right)/float64(all), deep, depths)
	if all < samples*9/10 || depths == 0 || deep*100 < depths*99 {
		t.Errorf("%d samples; %d of %d stacks have the right depth", all, deep, depths)
	}
	if flags != nil {
		return // C2's full records are wrong where it inlines late
	}
	if right*100 < all*leastOfPlaces(jdk.Version) {
		t.Errorf("%d of %d samples are right", right, all)
	}
	if p := &seen[byProfile-1]; inlinesByProfile(jdk.Version) && p.right*10 < p.samples*8 {
		t.Errorf("where a profile alone tells what is called, %d of %d samples are right", p.right, p.samples)
	}
}

// startPlaces starts truth.Places, and waits until all of it is compiled: C2 has what is called 5,000 times, and what
// loops before that (Tier4InvocationThreshold, Tier4CompileThreshold).
func startPlaces(t testing.TB, jdk jvmtest.JDK, flags ...string) *jvmtest.JVM {
	t.Helper()
	jvm := jvmtest.Start(fact(t), jdk, "truth.Places", flags...)
	end := time.Now().Add(5 * time.Minute)
	for n := 0; n < 10_000; n, _ = strconv.Atoi(jvm.Command("rounds")[0]) {
		if time.Sleep(50 * time.Millisecond); time.Now().After(end) {
			t.Fatal("one of the threads does not work")
		}
	}
	return jvm
}

// byProfile is a place where a method of an interface is called, which has no loop of its own.
const byProfile = 26

// inlinesByProfile: up to 16 C2 was not seen to inline that call in every JVM.
func inlinesByProfile(version int) bool { return version >= 17 }

// leastOfPlaces is how many percent must be right. What C2 makes of the program differs from run to run, and one place
// has 4 percent of the samples.
func leastOfPlaces(version int) int {
	if inlinesByProfile(version) {
		return 90
	}
	return 85
}

// lookAtPlaces samples all places. It also returns of how many stacks the depth is known, and of how many it is right.
func lookAtPlaces(t testing.TB, pid, samples int) (seen [places]placeSeen, depths, deep int) {
	names := map[int]int{} // of threads: their place
	sample(t, attach(t, pid), time.Millisecond, samples, func(l *look.Look, st *profile.Stack) {
		place, ok := names[l.TID]
		if !ok {
			place = placeOfThread(pid, l.TID)
			names[l.TID] = place
		}
		if place == 0 || len(st.Frames) == 0 || !st.Frames[0].Kind.Java() {
			return // another thread, or the JVM works for this one
		}
		if seen[place-1].note(place, st.Frames[0].Func.Name) && place == 1 {
			depths++
			if count(st, "truth.Places.down") == placeDepth+1 && count(st, "truth.Places.leaf1") == 1 {
				deep++
			}
		}
	})
	return seen, depths, deep
}

// placeOfThread is the place at which a thread works, 0 if it is none of those.
func placeOfThread(pid, tid int) int {
	b, err := procfs.Read(procfs.TaskFile(pid, tid, "comm"), procfs.MaxFile)
	if err != nil {
		return 0
	}
	n, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "place-")
	place, err := strconv.Atoi(n)
	if !ok || err != nil || place > places {
		return 0
	}
	return place
}

// others tells which other methods were on top, the most frequent first.
func (p *placeSeen) others() string {
	var names []string
	for name := range p.wrong {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return p.wrong[b] - p.wrong[a] })
	text := ""
	for _, name := range names {
		text += fmt.Sprintf("; %d %s", p.wrong[name], name)
	}
	return text
}
