//go:build linux

package oracle

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/profile"
	"goprof/testdata/jvmtest"
	"goprof/triage"
	"goprof/triage/examine"
)

var (
	// triageSeconds is how long each JVM is looked at. The command looks for ten.
	triageSeconds = envNumber("GOPROF_TRIAGE_SECONDS", 4)
	// triageAll has all programs on each JDK, and the healthy ones beside busy loops, too: a quarter of an hour. Else a
	// program is on the oldest JDK that can run it, and of those that keep a CPU busy or are healthy half are drawn by
	// lot. TestEachDisease of triage has every disease, as recorded facts.
	triageAll = os.Getenv("GOPROF_TRIAGE_ALL") != "" || longForm
)

// triageJDK tells whether a program is looked at on this JDK.
func triageJDK(t *testing.T, jdk jvmtest.JDK, oldest int) bool {
	if jdk.Version < oldest || triageAll {
		return jdk.Version >= oldest
	}
	for _, other := range jvmtest.JDKs(t) {
		if other.Version >= oldest {
			return other == jdk
		}
	}
	return false
}

// disease is a program of testdata/java/diseases and what makes it ill.
type disease struct {
	id     profile.FindingID
	class  string
	flags  []string // of the JVM
	ill    []string // flags that it has in its sick way only
	args   []string // behind "sick" or "well"
	oldest int      // JDK
	// make does to the sick JVM what a program cannot do to itself. It returns false where it is not permitted here.
	make  func(t *testing.T, jvm *jvmtest.JVM) bool
	old   bool // the JVM must be: it grows old while others are looked at
	prove bool // in the long form only: it has the whole machine use its disk
	// healthy: its well way is one of the ten that must be acquitted.
	healthy bool
	// beside starts what the program talks with, and returns its last argument.
	beside func(t *testing.T, way string) string
	all    bool   // with triageAll only: its rule has a neighbour in this list
	says   string // its evidence must
	// waits: sick it wants hardly any CPU, so that it is looked at beside others (go test's -parallel says how many).
	waits bool
}

// Of those that want CPU the last two come when those that wait have been looked at: the first of these must get all
// that its limit gives it, and beside the other one nobody gets enough.
var diseases = []disease{
	{id: profile.ClassLoading, class: "Loads", old: true, healthy: true, waits: true},
	{id: profile.NativeGrowth, class: "Native", flags: []string{"-Xms1g", "-Xmx1g"}, old: true, make: load,
		waits: true},
	{id: profile.DirectFull, class: "Native", flags: []string{"-XX:MaxDirectMemorySize=2m"}, make: load, waits: true},
	{id: profile.CPUHot, class: "HotLoop", healthy: true},
	{id: profile.GCBusy, class: "Garbage", flags: []string{"-Xmx600m", "-Xmn100m", "-XX:+UseParallelGC"},
		args:    []string{"100"},
		healthy: true},
	{id: profile.GCBusy, class: "Collects", args: []string{"asked"}, says: "asked for in truth.Collects.tidyUp"},
	{id: profile.GCBusy, class: "Collects", args: []string{"direct"}, flags: []string{"-XX:MaxDirectMemorySize=16m"},
		says: "direct memory", all: true},
	{id: profile.GCBusy, class: "Collects", args: []string{"humongous"}, says: "humongous", all: true, oldest: 11,
		flags: []string{"-Xmx200m", "-XX:+UseG1GC", "-XX:G1HeapRegionSize=1m"}},
	{id: profile.HeapFull, class: "FullHeap", flags: []string{"-Xmx200m", "-XX:+UseSerialGC"}, healthy: true},
	{id: profile.Deadlocked, class: "Philosophers", healthy: true, waits: true},
	{id: profile.LockContention, class: "OneLock", args: []string{"monitor"}, healthy: true, waits: true},
	{id: profile.LockContention, class: "OneLock", args: []string{"lock"}, waits: true},
	{id: profile.WaitingRemote, class: "Remote", healthy: true, waits: true},
	{id: profile.CodeCacheFull, class: "FullCode", flags: []string{"-XX:ReservedCodeCacheSize=5m",
		"-XX:-UseCodeCacheFlushing", "-XX:TieredStopAtLevel=1", "-Xcomp"}, waits: true},
	{id: profile.SafepointStall, class: "Stall", ill: []string{"-XX:-UseCountedLoopSafepoints",
		"-XX:LoopStripMiningIter=0"}},
	{id: profile.CompilerBehind, class: "Uncompiled", make: holdCompilers, old: true, waits: true, all: true},
	{id: profile.Exceptions, class: "Throws", healthy: true},
	{id: profile.ThreadLeak, class: "Leak", healthy: true, waits: true},
	{id: profile.Swapping, class: "Swaps", flags: []string{"-Xmx400m"}, make: inSmallMemory, healthy: true, prove: true},
	{id: profile.MallocKept, class: "Kept", healthy: true, waits: true},
	{id: profile.MemoryLimit, class: "Swaps", flags: []string{"-Xmx400m", "-XX:+UseSerialGC"}, make: nearMemoryLimit,
		waits: true},
	{id: profile.FDLimit, class: "OpenFiles", make: fewFiles, waits: true},
	{id: profile.FinalizerBehind, class: "Finalizes", healthy: true, waits: true},
	{id: profile.Pinned, class: "Pins", flags: []string{"-Djdk.virtualThreadScheduler.parallelism=2"}, oldest: 21,
		waits: true},
	{id: profile.PoolStuck, class: "Pools", args: []string{"connections"}, waits: true, healthy: true},
	{id: profile.PoolStuck, class: "Pools", args: []string{"nested"}, waits: true},
	{id: profile.PoolStuck, class: "Pools", args: []string{"leaked"}, waits: true, healthy: true, all: true},
	{id: profile.PoolStuck, class: "Pools", args: []string{"room"}, waits: true, healthy: true},
	{id: profile.PoolStuck, class: "Pools", args: []string{"permits"}, waits: true, healthy: true, all: true},
	{id: profile.PoolStuck, class: "Pools", args: []string{"children"}, waits: true, healthy: true, all: true},
	{id: profile.PoolStuck, class: "Pools", args: []string{"barrier"}, waits: true, healthy: true, all: true},
	{id: profile.PoolStuck, class: "Pools", args: []string{"virtual-peer"}, waits: true, healthy: true, oldest: 21,
		beside: besideSockets},
	{id: profile.PoolStuck, class: "Pools", args: []string{"virtual-lock"}, waits: true, healthy: true, oldest: 21,
		all: true},
	{id: profile.PoolStuck, class: "Pools", args: []string{"virtual-permits"}, waits: true, healthy: true, oldest: 21},
	{id: profile.CPUThrottled, class: "Hungry", make: inNarrowCgroup},
	{id: profile.CPUShort, class: "Hungry", make: besideLoops},
}

func (d *disease) String() string {
	return strings.Join(append([]string{string(d.id)}, d.args...), " ")
}

// illFor are the flags that make it ill, as far as this JDK knows them.
func (d *disease) illFor(jdk jvmtest.JDK) []string {
	if jdk.Version >= 11 {
		return d.ill
	}
	return slices.DeleteFunc(slices.Clone(d.ill), func(f string) bool {
		return strings.Contains(f, "LoopStripMining")
	})
}

func (d *disease) start(t *testing.T, jdk jvmtest.JDK, way string) *jvmtest.JVM {
	options := slices.Clone(d.flags)
	if way == "sick" {
		options = append(options, d.illFor(jdk)...)
	}
	options = append(append(options, "--", way), d.args...)
	if d.beside != nil {
		options = append(options, d.beside(t, way))
	}
	return jvmtest.Start(t, jdk, "truth."+d.class, options...)
}

// sockets is how many connections truth.Pools wants.
const sockets = 300

// besideSockets is a server that never answers, for a sick program, and clients that never ask, for a healthy one. It
// returns the server's port.
func besideSockets(t *testing.T, way string) string {
	server, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := server.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	open, next := context.WithCancel(context.Background())
	connect := server.Accept
	if way == "well" {
		server.Close() // the program takes the port
		connect = func() (net.Conn, error) { return net.Dial("tcp4", address) }
	}
	t.Cleanup(func() {
		next()
		server.Close()
	})
	go func() {
		for n := 0; n < sockets && open.Err() == nil; {
			c, err := connect()
			if err != nil {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			n++
			context.AfterFunc(open, func() { c.Close() })
		}
	}()
	return port
}

// TestTriageDiseases: each disease is found. Its finding is the first or the second; findings of the machine's own
// (cpu-short) do not count, where the machine is short of CPU.
func TestTriageDiseases(t *testing.T) {
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		if !triageAll {
			t.Parallel() // in this form JDKs other than the oldest have only programs that wait
		}
		table := newTriageTable(t, jdk)
		start := func(t *testing.T, d *disease) *jvmtest.JVM { return d.start(t, jdk, "sick") }
		var some []int
		table.each(busy, func(i int) { some = append(some, i) })
		first := max(0, len(some)-2)
		some, last := some[:first], some[first:]
		t.Run("all", func(t *testing.T) { // ends when those side by side have
			table.each(idle, func(i int) { table.find(t, i, start, true) })
			t.Run("busy", func(t *testing.T) { // one of these at a time
				t.Parallel()
				if !triageAll {
					some = jvmtest.Drawn(t, (len(some)+1)/2, some)
				}
				for _, i := range some {
					table.find(t, i, start, false)
				}
			})
		})
		for _, i := range last {
			table.find(t, i, start, false)
		}
		table.log()
	})
}

// TestTriageOldDiseases is TestTriageDiseases for those that need a JVM which is a minute old.
func TestTriageOldDiseases(t *testing.T) {
	t.Parallel()
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		table := newTriageTable(t, jdk)
		jvms, born := map[*disease]*jvmtest.JVM{}, time.Now()
		table.each(old, func(i int) { jvms[&diseases[i]] = diseases[i].start(t, jdk, "sick") })
		if len(jvms) > 0 {
			time.Sleep(time.Until(born.Add(oldAge)))
		}
		table.each(old, func(i int) {
			table.find(t, i, func(_ *testing.T, d *disease) *jvmtest.JVM { return jvms[d] }, false)
		})
		table.log()
	})
}

// triageTable has a row for each disease of a spell that was found.
type triageTable struct {
	t    *testing.T
	jdk  jvmtest.JDK
	rows []string
}

func newTriageTable(t *testing.T, jdk jvmtest.JDK) *triageTable {
	return &triageTable{t, jdk, make([]string, len(diseases))}
}

// each calls do for the diseases of a spell that are looked for on this JDK in this run.
func (r *triageTable) each(of spell, do func(i int)) {
	for i := range diseases {
		if d := &diseases[i]; d.spell() == of && triageJDK(r.t, r.jdk, d.oldest) && d.now() {
			do(i)
		}
	}
}

func (r *triageTable) find(t *testing.T, i int, jvm func(*testing.T, *disease) *jvmtest.JVM, sideBySide bool) {
	t.Run(diseases[i].String(), func(t *testing.T) {
		if sideBySide {
			t.Parallel()
		}
		r.rows[i] = diseases[i].find(t, jvm(t, &diseases[i]))
	})
}

func (r *triageTable) log() {
	rows := slices.DeleteFunc(r.rows, func(r string) bool { return r == "" })
	r.t.Logf("diseases on %s, %d s each\n%s", r.jdk, triageSeconds, strings.Join(rows, "\n"))
}

// spell is when and beside what a sick program is looked at.
type spell int

const (
	busy spell = iota // beside programs that wait
	idle              // beside others
	old               // a minute old: TestTriageOldDiseases
)

// oldAge is how old a JVM must be whose disease is old.
const oldAge = 62 * time.Second

func (d *disease) spell() spell {
	switch {
	case d.old:
		return old
	case d.waits:
		return idle
	}
	return busy
}

// now reports whether it is looked at in this run.
func (d *disease) now() bool { return (longForm || !d.prove) && (triageAll || !d.all) }

// find looks for a disease, and returns its row of the table.
func (d *disease) find(t *testing.T, jvm *jvmtest.JVM) string {
	if d.make != nil && !d.make(t, jvm) {
		t.Skip("not permitted here; the rule itself is proven by recorded facts: TestEachDisease of triage")
	}
	var got profile.Triage
	at, used := 0, 0.0
	for _, length := range looks() {
		var e *triage.Evidence
		var unseen []string
		got, e, unseen = triagedFor(t, jvm.PID, length)
		at = rankOf(got, d.id, short(e))
		if at >= 1 && at <= 2 && strings.Contains(shown(got), d.says) && len(unseen) == 0 {
			return row(d, got, at)
		}
		used = e.Rates.CPU.Or(0)
		t.Logf("not found in %v: it had %.2f CPUs, and %.2f were stolen; %q", length, used, e.Rates.Steal.Or(0), unseen)
		if longForm && used >= starving && !stolen(e) {
			break
		}
	}
	if used < starving && !d.waits && rankOf(got, profile.CPUShort, false) == 1 {
		t.Skipf("not judged: the program had %.2f CPUs each time, and that is what is found:\n%s", used, shown(got))
	}
	t.Errorf("%s is not found, or late, or does not say %q:\n%s", d.id, d.says, shown(got))
	return row(d, got, at)
}

// healthyOthers are the rest of the healthy programs.
var healthyOthers = [][]string{{"truth.RequestPools"}, {"truth.Pools", "--", "well", "idle"},
	{"truth.Pools", "--", "well", "batch"}, {"truth.JavacLoop"}}

// TestTriageHealthy: nothing is said of healthy programs, but that the machine is short of CPU where it is.
func TestTriageHealthy(t *testing.T) {
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		acquitAll(t, jdk, true)
	})
}

// TestTriageBesideLoops: the same on a machine with busy loops beside them.
func TestTriageBesideLoops(t *testing.T) {
	if !triageAll {
		t.Skip("takes minutes: set GOPROF_TRIAGE_ALL=1")
	}
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		busyLoops(t, crowd)
		acquitAll(t, jdk, false)
	})
}

// acquitAll looks at the healthy programs, some side by side where the machine has nothing else to do.
func acquitAll(t *testing.T, jdk jvmtest.JDK, sideBySide bool) {
	var acquitted atomic.Int32
	type well struct {
		name  string
		start func(t *testing.T) *jvmtest.JVM
	}
	var programs []well
	acquit := func(t *testing.T, w well) {
		t.Run(w.name, func(t *testing.T) {
			if sideBySide {
				t.Parallel()
			}
			pid := w.start(t).PID
			var of []profile.FindingID
			var looked acquittal
			for _, length := range looks() {
				got, e, unseen := triagedFor(t, pid, length)
				t.Log(ids(got))
				of = accused(got, e)
				if looked.is(of, unseen, e) {
					acquitted.Add(1)
					return
				}
				t.Logf("accused in %v, %.2f CPUs were stolen; %q:\n%s", length, e.Rates.Steal.Or(0), unseen, shown(got))
				if longForm && !stolen(e) {
					break
				}
			}
			t.Errorf("accused of %s", of)
		})
	}
	t.Run("all", func(t *testing.T) {
		for _, d := range diseases {
			if d.healthy && d.now() && triageJDK(t, jdk, d.oldest) {
				name := strings.Join(append([]string{d.class}, d.args...), " ")
				programs = append(programs, well{name, func(t *testing.T) *jvmtest.JVM { return d.start(t, jdk, "well") }})
			}
		}
		for _, line := range healthyOthers {
			if !triageJDK(t, jdk, 0) {
				break
			}
			if line[0] == "truth.JavacLoop" && !triageAll {
				t.Logf("%s takes half a minute: set GOPROF_TRIAGE_ALL=1", line[0])
				continue
			}
			if line[0] == "truth.JavacLoop" && !sideBySide {
				// It compares two rounds before it ends. Beside loops those of 200 classes take longer than it may.
				line = append(slices.Clone(line), "--", "0", "40")
			}
			programs = append(programs, well{line[0], func(t *testing.T) *jvmtest.JVM {
				return jvmtest.Start(t, jdk, line[0], line[1:]...)
			}})
		}
		if !triageAll {
			programs = jvmtest.Drawn(t, (len(programs)+1)/2, programs)
		}
		for _, w := range programs {
			acquit(t, w)
		}
	})
	t.Logf("%d healthy programs acquitted on %s", acquitted.Load(), jdk)
}

// acquittal counts the looks at a healthy program. One look that finds nothing acquits it. If one has accused it, the
// two others must find nothing: what is said falsely in every third look must not pass. The first look is shorter than
// the command's, so one accusation alone is not an error.
type acquittal struct {
	clean   int
	accused bool
}

// is adds a look, and reports whether the program is acquitted. What was said while a hypervisor had the CPUs does not
// count, nor does a look that could not see all.
func (a *acquittal) is(of []profile.FindingID, unseen []string, e *triage.Evidence) bool {
	switch {
	case len(of) > 0:
		a.accused = a.accused || !stolen(e)
	case len(unseen) == 0:
		a.clean++
	}
	return a.clean >= 2 || a.clean == 1 && !a.accused
}

// A program that has less than starving CPUs gives too few samples in some seconds to say what it does.
const starving = 0.25

// looks is for how long a JVM is looked at until it is judged right. In some seconds a program may have too little of
// the machine to show what it does, or stand still in the middle of anything. The command looks for ten seconds. In the
// long form the first look decides, unless the machine had no CPU for the program.
func looks() []time.Duration {
	first := time.Duration(triageSeconds) * time.Second
	return []time.Duration{first, 3 * first, time.Minute}
}

// triagedFor judges a JVM as the command does. It also returns what could not be looked at.
func triagedFor(t *testing.T, pid int, d time.Duration) (got profile.Triage, e *triage.Evidence, unseen []string) {
	t.Helper()
	e, notes, err := examine.Gather(context.Background(), pid, examine.Options{Duration: d, Tell: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range notes {
		if strings.HasPrefix(n, "the heap: ") {
			t.Log(n) // A heap that changes faster than it is read is no disease, and no rule needs it.
			continue
		}
		unseen = append(unseen, n)
	}
	return triage.Judge(e), e, unseen
}

// short tells whether the machine had no CPU left, whoever used it.
func short(e *triage.Evidence) bool {
	return e.Rates.Busy.Or(0)+e.Rates.Steal.Or(0) > 0.8 || stolen(e)
}

// stolen tells whether a hypervisor took the CPUs away, so that the program stood still in the middle of anything: a
// collection that is stolen from takes as long as those of a sick program.
func stolen(e *triage.Evidence) bool { return e.Rates.Steal.Or(0) > 0.08 }

// accused is what a healthy program is said to suffer from.
func accused(t profile.Triage, e *triage.Evidence) (of []profile.FindingID) {
	for _, f := range t.Findings {
		if f.ID != profile.CPUShort || !short(e) {
			of = append(of, f.ID)
		}
	}
	return of
}

// rankOf is where a finding stands, from 1 on; 0: nowhere.
func rankOf(t profile.Triage, id profile.FindingID, short bool) int {
	at := 0
	for _, f := range t.Findings {
		if f.ID == id {
			return at + 1
		}
		if f.ID != profile.CPUShort || !short {
			at++
		}
	}
	return 0
}

func ids(t profile.Triage) (found []string) {
	for _, f := range t.Findings {
		found = append(found, string(f.ID))
	}
	return found
}

func shown(t profile.Triage) string {
	var b strings.Builder
	for _, f := range t.Findings {
		fmt.Fprintf(&b, "%s: %s\n  %s\n", f.ID, f.Claim, strings.Join(f.Evidence, "\n  "))
	}
	for _, u := range t.Unknown {
		fmt.Fprintf(&b, "not known: %s: %s\n", u.ID, u.Why)
	}
	return b.String()
}

// row is a line of the table of docs/evidence/triage.md.
func row(d *disease, got profile.Triage, at int) string {
	claim := ""
	for _, f := range got.Findings {
		if f.ID == d.id {
			claim = f.Claim
		}
	}
	program := strings.Join(append([]string{d.class, "sick"}, d.args...), " ")
	return fmt.Sprintf("| `%s` | %d | `%s` | %s |", d.id, at, program, claim)
}

// load has the program do what makes it ill.
func load(t *testing.T, jvm *jvmtest.JVM) bool {
	jvm.Command("load")
	return true
}

// holdCompilers keeps the compilers from running, and has the program run ever more new methods.
func holdCompilers(t *testing.T, jvm *jvmtest.JVM) bool {
	if jvm.JDK.Version == 8 {
		return false // nothing tells of its queues
	}
	_, release := jvmtest.HoldThreads(t, jvm.PID, "CompilerThre")
	t.Cleanup(release)
	return load(t, jvm)
}

// fewFiles lowers the limit of a JVM's open files: it raises it itself when it starts.
func fewFiles(t *testing.T, jvm *jvmtest.JVM) bool {
	limit := unix.Rlimit{Cur: 256, Max: 256}
	if err := unix.Prlimit(jvm.PID, unix.RLIMIT_NOFILE, &limit, nil); err != nil {
		t.Log(err)
		return false
	}
	return true
}

// crowd is how many busy loops leave a program little of the machine.
var crowd = 3 * runtime.NumCPU()

// besideLoops takes the machine's CPUs away.
func besideLoops(t *testing.T, _ *jvmtest.JVM) bool {
	busyLoops(t, crowd)
	return true
}

// inNarrowCgroup moves a JVM into a control group that may use a fifth of a CPU.
func inNarrowCgroup(t *testing.T, jvm *jvmtest.JVM) bool {
	for _, version := range []struct{ root, file, limit string }{
		{"/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "20000"},
		{"/sys/fs/cgroup", "cpu.max", "20000 100000"},
	} {
		if inCgroup(t, jvm.PID, version.root, version.file, version.limit) {
			return true
		}
	}
	return false
}

// nearMemoryLimit has a JVM grow in a control group of its own, and then leaves the group hardly more than it uses.
func nearMemoryLimit(t *testing.T, jvm *jvmtest.JVM) bool {
	for _, version := range []struct{ root, limit, none, used string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "-1", "memory.usage_in_bytes"},
		{"/sys/fs/cgroup", "memory.max", "max", "memory.current"},
	} {
		if !inCgroup(t, jvm.PID, version.root, version.limit, version.none) {
			continue
		}
		jvm.Command("grow")
		dir := filepath.Join(version.root, fmt.Sprintf("goprof-triage-%d", jvm.PID))
		text, err := os.ReadFile(filepath.Join(dir, version.used))
		used, err2 := strconv.Atoi(strings.TrimSpace(string(text)))
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		most := strconv.Itoa(used + used/33)
		return os.WriteFile(filepath.Join(dir, version.limit), []byte(most), 0o644) == nil
	}
	return false
}

// inCgroup moves a process into a control group of its own with one limit, until the test ends.
func inCgroup(t *testing.T, pid int, root, file, limit string) bool {
	procs := filepath.Join(root, "cgroup.procs")
	dir := filepath.Join(root, fmt.Sprintf("goprof-triage-%d", pid))
	if _, err := os.Stat(procs); err != nil || os.Mkdir(dir, 0o755) != nil {
		return false
	}
	t.Cleanup(func() {
		os.WriteFile(procs, []byte(strconv.Itoa(pid)), 0o644)
		if err := os.Remove(dir); err != nil {
			t.Log(err)
		}
	})
	return os.WriteFile(filepath.Join(dir, file), []byte(limit), 0o644) == nil &&
		os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644) == nil
}
