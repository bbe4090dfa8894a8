//go:build linux

package oracle

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"goprof/profile"
	"goprof/testdata/jvmtest"
	"goprof/testdata/sampletest"
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
	if (used < starving || sampletest.MayMiss()) && !d.waits && rankOf(got, profile.CPUShort, false) == 1 {
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

// A program that has less than starving CPUs gives too few samples in some seconds to say what it does. On an emulated
// machine a program may wait for its CPU longer than it has one.
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
