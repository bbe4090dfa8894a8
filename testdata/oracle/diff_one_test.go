//go:build linux

package oracle

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/output/diff"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// TestDiffOneJVM measures how often a comparison of two recordings of one JVM is wrong. A round is four recordings,
// one after the other: two of the program as it is, two with a method made slower by 5 % of all CPU time. The first
// two and the last two are pairs of the same program. The first and the third, the second and the fourth are pairs in
// which a method became slower. So no recording is in two pairs of one sort. The recordings stay in the folder
// GOPROF_DIFF_KEEP, and those that are there already are compared, too. On two JDKs 25 rounds give 100 pairs of each
// sort. That takes 2,000 s of the program's CPU time:
//
//	GOPROF_DIFF_KEEP=/tmp/steady GOPROF_DIFF_ONE=25 go test ./testdata/oracle -run TestDiffOneJVM -v -timeout 2h
//
// The last line has the rates of all JDKs together.
// GOPROF_DIFF_RATE is how many samples are taken of a second (1,000).
func TestDiffOneJVM(t *testing.T) {
	rounds := envNumber("GOPROF_DIFF_ONE", 0)
	folder := cmp.Or(os.Getenv("GOPROF_DIFF_KEEP"), t.TempDir())
	if rounds == 0 && os.Getenv("GOPROF_DIFF_KEEP") == "" {
		t.Skip("this measures how often a comparison is wrong, which takes rounds: GOPROF_DIFF_ONE=5")
	}
	all := diffCounts{what: "one JVM, all JDKs"}
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		folder := filepath.Join(folder, "one", jdk.String())
		if rounds > 0 {
			recordRounds(t, jdk, folder, rounds)
		}
		all.add(compareRounds(t, folder))
	})
	t.Log(all)
}

// warmingUp is how many samples are thrown away: goprof learns the program's code by them.
const warmingUp = 3000

// The recordings of a round.
const (
	plainOf = iota
	plainAgain
	slowOf
	slowAgain
	perRound
)

// recordRounds starts a JVM and records it, into a folder of its own.
func recordRounds(t *testing.T, jdk jvmtest.JDK, folder string, rounds int) {
	t.Helper()
	jvm := jvmtest.Start(t, jdk, "truth.Steady")
	c := steadyOf{s: attach(t, jvm.PID), jvm: jvm, tid: taskNamed(t, jvm.PID, "steady"),
		folder: filepath.Join(folder, fmt.Sprint(time.Now().UnixNano()))}
	if err := os.MkdirAll(c.folder, 0o700); err != nil {
		t.Fatal(err)
	}
	jvm.Command("mark")
	sample(t, c.s, time.Millisecond, warmingUp, nil)
	jvm.Command("slower 5")
	for round := range rounds {
		for i := range perRound {
			jvm.Command([perRound]string{"plain", "plain", "again", "again"}[i])
			c.record(t, fmt.Sprintf("%03d-%d", round, i))
		}
	}
	jvm.Quit()
}

// steadyOf is a JVM that is recorded again and again.
type steadyOf struct {
	s      *session.Session
	jvm    *jvmtest.JVM
	tid    int // of the program's thread: what the JVM's own do depends on how long a recording takes
	folder string
}

// taskNamed is the thread that the kernel knows by that name.
func taskNamed(t *testing.T, pid int, name string) int {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/comm", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		if comm, err := os.ReadFile(task); err == nil && strings.TrimSpace(string(comm)) == name {
			tid, err := strconv.Atoi(filepath.Base(filepath.Dir(task)))
			if err != nil {
				t.Fatal(err)
			}
			return tid
		}
	}
	t.Fatalf("process %d has no thread %q", pid, name)
	return 0
}

// record makes one recording, and keeps what the program says of itself meanwhile.
func (c *steadyOf) record(t *testing.T, name string) {
	t.Helper()
	interval := time.Second / time.Duration(envNumber("GOPROF_DIFF_RATE", 1000))
	name = filepath.Join(c.folder, name)
	c.jvm.Command("mark")
	recordTo(t, name+".jfr", c.s, interval, envNumber("GOPROF_DIFF_SAMPLES", 10_000), c.tid)
	if err := os.WriteFile(name+".truth", []byte(c.jvm.Command("truth")[0]), 0o600); err != nil {
		t.Fatal(err)
	}
}

// compareRounds compares the recordings of all rounds that are whole.
func compareRounds(t *testing.T, folder string) diffCounts {
	t.Helper()
	lasts, err := filepath.Glob(filepath.Join(folder, "*", fmt.Sprintf("*-%d.truth", slowAgain)))
	if err != nil {
		t.Fatal(err)
	}
	counts, moves := diffCounts{what: "one JVM"}, movesOf{}
	for _, last := range lasts {
		var files [perRound][]string
		var truths [perRound]truth
		for i := range perRound {
			name := strings.TrimSuffix(last, fmt.Sprintf("%d.truth", slowAgain)) + fmt.Sprint(i)
			files[i], truths[i] = []string{name + ".jfr"}, readTruth(t, name+".truth")
		}
		for _, i := range []int{plainOf, slowOf} {
			moves.add(counts.same(t, files[i], files[i+1]), &truths[i], &truths[i+1])
		}
		for _, i := range []int{plainOf, plainAgain} {
			counts.slower(t, files[i], files[i+slowOf])
			moves.slower = append(moves.slower, 100*(truths[i+slowOf].Price-truths[i].Price))
		}
	}
	t.Log(counts)
	moves.print(t)
	return counts
}

// movesOf is by how much the shares of the program's parts differ in pairs of recordings of the same program: by the
// samples, and by the program's own clock.
type movesOf struct {
	parts  [4]moves
	slower []float64 // by how many points the slower program's price has more, by its own clock
}

// moves are sums over pairs, in the variance of independent samples: of what samples say, of what the clock says, and
// of what the samples say apart from the clock.
type moves struct{ pairs, share, samples, clock, apart float64 }

func (m *movesOf) add(r *diff.Result, before, after *truth) {
	own := points(after, before)
	for i, part := range []string{"parse", "price", "store", "render"} {
		for _, ch := range r.Changes {
			if ch.Of != diff.OfTotal || !strings.HasSuffix(ch.Name, "."+part) {
				continue
			}
			p := (ch.Before + ch.After) / 2
			alone := p * (1 - p) * (1/float64(r.Before.Looks) + 1/float64(r.After.Looks))
			by, clock := ch.Change, own[i]/100
			to := &m.parts[i]
			to.pairs++
			to.share += p
			to.samples += by * by / alone
			to.clock += clock * clock / alone
			to.apart += (by - clock) * (by - clock) / alone
		}
	}
}

func (m *movesOf) print(t *testing.T) {
	t.Helper()
	for i, part := range []string{"parse", "price", "store", "render"} {
		p := &m.parts[i]
		t.Logf("%s, %.0f %%: two recordings of the same program differ by %.2f times the variance of independent "+
			"samples; by the program's own clock by %.2f; the samples differ from the clock by %.2f", part,
			100*p.share/p.pairs, p.samples/p.pairs, p.clock/p.pairs, p.apart/p.pairs)
	}
	t.Logf("by its own clock, the slower program's price has %.1f points more", m.slower)
}
