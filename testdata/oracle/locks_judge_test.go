//go:build linux

package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/profile/contention"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// lockFlags are the ways of a JDK to lock, with the collectors that move what is locked.
func lockFlags(jdk jvmtest.JDK) (all []string) {
	all = []string{"-XX:+UseSerialGC -Xint", "-XX:+UseParallelGC -XX:-UseCompressedOops"}
	if jdk.Version >= 9 {
		all = append(all, "-XX:+UseG1GC -XX:TieredStopAtLevel=1 -Xcomp -XX:CompileCommand=quiet -XX:CompileOnly=truth/*.*")
	} else {
		all = append(all, "-XX:+UseConcMarkSweepGC -XX:TieredStopAtLevel=1 -Xcomp")
	}
	all = append(all, "-XX:-TieredCompilation -Xcomp -XX:CompileCommand=quiet -XX:CompileOnly=truth/*.*")
	for _, collector := range []string{"-XX:+UseZGC", "-XX:+UseShenandoahGC"} {
		if jdk.Version >= 15 && refuses(jdk, []string{collector}) == "" {
			all = append(all, collector)
		}
	}
	switch {
	case jdk.Version == 11:
		all = append(all, "-XX:-UseBiasedLocking")
	case jdk.Version == 21:
		for mode := range 3 {
			all = append(all, fmt.Sprintf("-XX:+UnlockExperimentalVMOptions -XX:LockingMode=%d", mode))
		}
		all = append(all, "-XX:+UseZGC -XX:+ZGenerational")
	case jdk.Version == 25:
		all = append(all, "-XX:LockingMode=1", "-XX:+UnlockDiagnosticVMOptions -XX:+UseObjectMonitorTable",
			"-XX:+UnlockExperimentalVMOptions -XX:+UseCompactObjectHeaders")
	case jdk.Version >= 27:
		all = append(all, "-XX:+UnlockDiagnosticVMOptions -XX:-UseObjectMonitorTable")
	}
	return all
}

// lockNode is what truth.LocksGraph says of one of its threads.
type lockNode struct {
	kind, class string
	waitsFor    int
	virtual     bool
}

// startGraph starts threads that wait for each other's locks.
func startGraph(t *testing.T, jdk jvmtest.JDK, flags string, seed, threads int, kinds string,
	virtual int, more ...string) (*jvmtest.JVM, []lockNode) {
	t.Helper()
	line := append(strings.Fields(flags), "-Xmx128m", "--", strconv.Itoa(seed), strconv.Itoa(threads), kinds,
		strconv.Itoa(virtual))
	line = append(line, more...)
	jvm := jvmtest.Start(t, jdk, "truth.LocksGraph", line...)
	var nodes []lockNode
	for _, l := range jvm.Command("truth") {
		f := strings.Fields(l)
		waitsFor, err := strconv.Atoi(f[4])
		if err != nil || f[0] != "NODE" || f[1] != strconv.Itoa(len(nodes)) {
			t.Fatalf("the program says %q", l)
		}
		nodes = append(nodes, lockNode{f[2], f[3], waitsFor, f[5] == "virtual"})
	}
	return jvm, nodes
}

// lockedIn finds the program's threads in a dump.
func lockedIn(threads []profile.ThreadDump) map[string]*profile.ThreadDump {
	m := map[string]*profile.ThreadDump{}
	for i := range threads {
		t := &threads[i]
		if name := cmp.Or(t.Stack.Virtual.Name, t.Name); strings.HasPrefix(name, "lock-") { // not the carrier's
			m[name] = t
		}
	}
	return m
}

func lockName(i int) string { return "lock-" + strconv.Itoa(i) }

// judgeLocks compares what is told with the truth. Where not all can be known, what is told must still be right.
func judgeLocks(t *testing.T, nodes []lockNode, threads []profile.ThreadDump, all bool) (told, of int) {
	t.Helper()
	named := lockedIn(threads)
	ids := map[int]uint64{} // of each lock, as those that want it tell
	owners := make([]int, len(nodes))
	for i, n := range nodes {
		owners[i] = -1
		th := named[lockName(i)]
		if n.virtual && n.waitsFor < 0 || th == nil && !all {
			continue
		}
		if th == nil {
			t.Errorf("%s is not there", lockName(i))
			continue
		}
		w := th.WaitsFor
		if n.waitsFor < 0 {
			if w != nil && (w.Owner != profile.ThreadRef{} || w.Kind == profile.Exclusive) {
				t.Errorf("%s waits for nobody, but %+v is told", th.Name, w)
			}
			continue
		}
		of++
		owner := nodes[n.waitsFor]
		owners[i] = n.waitsFor
		if w == nil || w.Owner == (profile.ThreadRef{}) {
			// An unmounted owner of a monitor that nobody wanted when it was mounted is not known (docs/locks.md).
			if all && !(owner.kind == "s" && w != nil) && !(owner.kind == "m" && owner.virtual && w != nil) {
				t.Errorf("%s: nothing is told of its waiting for %d (%+v)", th.Name, n.waitsFor, w)
			}
			continue
		}
		told++
		checkWanted(t, th.Name, w, n.waitsFor, owner, all)
		if id, known := ids[n.waitsFor]; known && id != w.ID {
			t.Errorf("lock %d has two identities: %#x, %#x", n.waitsFor, id, w.ID)
		}
		ids[n.waitsFor] = w.ID
	}
	for i, n := range nodes {
		if th := named[lockName(i)]; th != nil && !n.virtual {
			checkHeld(t, th, i, n, ids, all)
		}
	}
	// A monitor of a virtual thread may have an owner that is not known: see above.
	if all && !slices.ContainsFunc(nodes, func(n lockNode) bool { return n.kind == "m" && n.virtual }) {
		checkDeadlocks(t, owners, threads)
	}
	return told, of
}

func checkWanted(t *testing.T, name string, w *profile.WantedLock, i int, owner lockNode, all bool) {
	t.Helper()
	how, kind := profile.ToUnpark, profile.Exclusive
	switch owner.kind {
	case "m":
		how, kind = profile.ToEnter, profile.Monitor
	case "s":
		kind = profile.Shared
	}
	class := owner.class
	if !all && w.Class == "" {
		class = ""
	}
	if w.How != how || w.Kind != kind || w.Class != class || w.Owner.Name != lockName(i) || w.Timed {
		t.Errorf("%s waits for lock %d %+v, told is %+v", name, i, owner, *w)
	}
	if w.Owner.TID == 0 && !owner.virtual || owner.virtual && w.Owner.Virtual == 0 {
		t.Errorf("%s: its owner is %+v", name, w.Owner)
	}
}

// checkHeld: of its monitors each is told once, and in the method that took it.
func checkHeld(t *testing.T, th *profile.ThreadDump, i int, n lockNode, ids map[int]uint64, all bool) {
	t.Helper()
	own, lock := 0, 0
	for _, h := range th.Holds {
		method := ""
		if h.Frame >= 0 {
			method = th.Stack.Frames[h.Frame].Func.Name
		}
		switch {
		case h.Class == "truth.LocksGraph$Own" && h.Kind == profile.Monitor:
			own++
			if !all && method == "" {
				continue
			}
			if method != "truth.LocksGraph.nested" {
				t.Errorf("%s took a monitor of its own in %q", th.Name, method)
			}
		case h.Class == n.class || h.Class == "":
			lock++
			if want, known := ids[i]; known && h.ID != want {
				t.Errorf("%s holds %#x, others wait for its %#x", th.Name, h.ID, want)
			}
			if n.kind == "m" && method != "truth.LocksGraph.holdMonitor" && (all || method != "") {
				t.Errorf("%s took its lock in %q", th.Name, method)
			}
		default:
			t.Errorf("%s is said to hold %+v", th.Name, h)
		}
	}
	_, wanted := ids[i]
	wantLock := 0
	if n.kind == "m" || wanted {
		wantLock = 1
	}
	if own > i%4 || lock > 1 || all && (own != i%4 || lock != wantLock) {
		t.Errorf("%s %+v holds %d of its own and %d locks, should be %d and %d: %+v; %d frames, %v %s", th.Name, n, own, lock,
			i%4, wantLock, th.Holds, len(th.Stack.Frames), th.Stack.Truncated, th.Err)
	}
}

// checkDeadlocks compares the cycles.
func checkDeadlocks(t *testing.T, owners []int, threads []profile.ThreadDump) {
	t.Helper()
	told := deadlocksIn(threads)
	if want := cyclesOf(owners); !slices.Equal(told, want) {
		t.Errorf("deadlocks %q, should be %q", told, want)
	}
}

// deadlocksIn names the threads of each deadlock.
func deadlocksIn(threads []profile.ThreadDump) (told []string) {
	for _, cycle := range contention.New(threads).Deadlocks {
		var names []string
		for _, i := range cycle {
			names = append(names, threads[i].Name)
		}
		slices.Sort(names)
		told = append(told, strings.Join(names, " "))
	}
	slices.Sort(told)
	return told
}

func cyclesOf(owners []int) (cycles []string) {
	done := map[int]bool{}
	for i := range owners {
		at, steps := owners[i], 0
		for at >= 0 && at != i && steps < len(owners) {
			at, steps = owners[at], steps+1
		}
		if at != i || done[i] {
			continue
		}
		names := []string{lockName(i)}
		done[i] = true
		for at = owners[i]; at != i; at = owners[at] {
			names = append(names, lockName(at))
			done[at] = true
		}
		slices.Sort(names)
		cycles = append(cycles, strings.Join(names, " "))
	}
	slices.Sort(cycles)
	return cycles
}

// lockWay is who looks at locks: goprof dump stops each thread for its stack, goprof locks none that waits.
type lockWay bool

const (
	asDump  lockWay = false
	asLocks lockWay = true
)

func (w lockWay) options() session.DumpOptions {
	return session.DumpOptions{Locks: true, Virtual: &profile.VirtualWaits{}, Gentle: w == asLocks}
}

// lockDump looks until every thread of truth.LocksGraph is told: see dumpUntil.
func lockDump(t *testing.T, s *session.Session, way lockWay) []profile.ThreadDump {
	t.Helper()
	threads, _ := dumpUntil(t, s, way, func(threads []profile.ThreadDump) bool { return !untold(threads) })
	return threads
}

// dumpUntil looks until every thread has stopped for its stack, and had a CPU to go back to sleep on before the locks
// were read: of those that have not nothing is told. On a busy machine that takes several looks.
func dumpUntil(t *testing.T, s *session.Session, way lockWay,
	done func([]profile.ThreadDump) bool) ([]profile.ThreadDump, *profile.VirtualWaits) {
	t.Helper()
	for end := time.Now().Add(jvmtest.Slow(30 * time.Second)); ; time.Sleep(20 * time.Millisecond) {
		opt := way.options()
		threads, err := s.Dump(opt)
		if err != nil {
			t.Fatal(err)
		}
		late, leftOut, _ := session.NotStopped(threads)
		if late+leftOut == 0 && opt.Virtual.Err == nil && done(threads) || time.Now().After(end) {
			return threads, opt.Virtual
		}
	}
}

// untold reports whether a thread that waits is not told to.
func untold(threads []profile.ThreadDump) bool {
	return slices.ContainsFunc(threads, func(t profile.ThreadDump) bool {
		waits := t.State == "BLOCKED" || t.State == "PARKED"
		return t.Unconfirmed || strings.HasPrefix(t.Name, "lock-") && waits && t.WaitsFor == nil
	})
}
