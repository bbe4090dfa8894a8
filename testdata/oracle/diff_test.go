//go:build linux

package oracle

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"goprof/output/diff"
	"goprof/output/jfr"
	"goprof/output/recording"
	"goprof/profile"
	"goprof/sampler/look"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// TestDiffPairs measures how often a comparison is wrong. It records a program, in JVM after JVM: twice as it is, then
// with one method made slower by 5 % of all CPU time. Compared are recordings of one JVM, of two, and several of each.
// The recordings stay in the folder GOPROF_DIFF_KEEP, and those that are there already are compared, too, so that many
// short runs add up to a long one:
//
//	GOPROF_DIFF_KEEP=/tmp/canary GOPROF_DIFF_ROUNDS=4 go test ./testdata/oracle -run TestDiffPairs -v
func TestDiffPairs(t *testing.T) {
	rounds, samples := envNumber("GOPROF_DIFF_ROUNDS", 0), envNumber("GOPROF_DIFF_SAMPLES", 10_000)
	folder := cmp.Or(os.Getenv("GOPROF_DIFF_KEEP"), t.TempDir())
	if rounds == 0 && os.Getenv("GOPROF_DIFF_KEEP") == "" {
		t.Skip("this measures how often a comparison is wrong, which takes rounds: GOPROF_DIFF_ROUNDS=20")
	}
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for range rounds {
			recordCanary(t, jdk, folder, samples)
		}
		all := keptCanaries(t, filepath.Join(folder, jdk.String()))
		if len(all) == 0 {
			t.Skip("no recordings of this JDK are kept")
		}
		tellDrift(t, all)
		compareCanaries(t, all)
	})
}

// The recordings of one JVM.
const (
	firstOf = iota
	secondOf
	slowerOf
	perJVM
)

// canary is one JVM's recordings.
type canary struct {
	files [perJVM]string
	truth [perJVM]truth // what the program says of itself
}

// truth is the shares of CPU time that the program's own clock tells.
type truth struct{ Parse, Price, Store, Render, Other float64 }

// recordCanary starts a JVM and writes its recordings, in a folder of their own.
func recordCanary(t *testing.T, jdk jvmtest.JDK, folder string, samples int) {
	t.Helper()
	jvm := jvmtest.Start(t, jdk, "truth.Canary")
	s := attach(t, jvm.PID)
	own := filepath.Join(folder, jdk.String(), fmt.Sprintf("%d", time.Now().UnixNano()))
	if err := os.MkdirAll(own, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range perJVM {
		if i == slowerOf {
			jvm.Command("slower 5")
		}
		jvm.Command("mark")
		recordTo(t, filepath.Join(own, fmt.Sprintf("%d.jfr", i)), s, time.Millisecond, samples, 0)
		truth := []byte(jvm.Command("truth")[0])
		if err := os.WriteFile(filepath.Join(own, fmt.Sprintf("%d.truth", i)), truth, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	jvm.Quit()
}

// recordTo takes n samples, and keeps those of one thread; 0 keeps all.
func recordTo(t *testing.T, name string, s *session.Session, interval time.Duration, n, tid int) {
	t.Helper()
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w := jfr.NewWriter(file, jfr.Options{})
	w.SetMeta(profile.Meta{Mode: profile.ModeCPU, Interval: interval})
	last := profile.Instant{}
	sample(t, s, interval, n, func(snap *look.Look, st *profile.Stack) {
		if last.Wall == 0 {
			last = profile.Instant{Wall: time.Now().UnixNano(), Ticks: snap.When}
		}
		last = profile.Instant{Ticks: snap.When, Wall: last.Wall + snap.When - last.Ticks}
		if tid != 0 && snap.TID != tid {
			return
		}
		err = cmp.Or(err, w.Sample(&profile.Sample{At: last, Thread: profile.Thread{TID: snap.TID}, Stack: st,
			Count: snap.Samples()}))
	})
	if err = cmp.Or(err, w.Close(last)); err != nil {
		t.Fatal(err)
	}
}

// keptCanaries are the JVMs of which all recordings are there.
func keptCanaries(t *testing.T, folder string) (all []canary) {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, own := range folders {
		c, whole := canary{}, true
		for i := range perJVM {
			c.files[i] = filepath.Join(own, fmt.Sprintf("%d.jfr", i))
			_, err := os.Stat(filepath.Join(own, fmt.Sprintf("%d.truth", i)))
			if whole = whole && err == nil; whole {
				c.truth[i] = readTruth(t, filepath.Join(own, fmt.Sprintf("%d.truth", i)))
			}
		}
		if whole {
			all = append(all, c)
		}
	}
	return all
}

func readTruth(t *testing.T, name string) (own truth) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err = cmp.Or(err, json.Unmarshal(text, &own)); err != nil {
		t.Fatal(err)
	}
	return own
}

// tellDrift prints by how much the program itself changes: from one recording of a JVM to the next, and between JVMs.
func tellDrift(t *testing.T, all []canary) {
	t.Helper()
	for i := range all {
		a, b, c := &all[i].truth[firstOf], &all[i].truth[secondOf], &all[i].truth[slowerOf]
		t.Logf("truth of JVM %d: first %.2f, second %+.2f, slower %+.2f points", i, points(a, &truth{}), points(b, a),
			points(c, b))
	}
}

func points(a, b *truth) []float64 {
	return []float64{100 * (a.Parse - b.Parse), 100 * (a.Price - b.Price), 100 * (a.Store - b.Store),
		100 * (a.Render - b.Render)}
}

// several is how many recordings a side the comparisons have that know how JVMs differ.
var several = []int{2, 3, 5}

func compareCanaries(t *testing.T, all []canary) {
	t.Helper()
	file := func(which int, of ...int) (names []string) {
		for _, i := range of {
			names = append(names, all[i].files[which])
		}
		return names
	}
	one, two := diffCounts{what: "one JVM"}, diffCounts{what: "two JVMs"}
	for i := range all {
		one.same(t, file(firstOf, i), file(secondOf, i))
		one.slower(t, file(firstOf, i), file(slowerOf, i))
		one.slower(t, file(secondOf, i), file(slowerOf, i))
		if j := i + 1; j < len(all) {
			two.same(t, file(firstOf, i), file(secondOf, j))
			two.slower(t, file(firstOf, i), file(slowerOf, j))
		}
	}
	t.Log(one)
	t.Log(two)
	for _, n := range several {
		some := diffCounts{what: fmt.Sprintf("%d JVMs a side", n)}
		rng := rand.New(rand.NewPCG(uint64(n), 1))
		for range min(4*len(all), 100) {
			if 2*n > len(all) {
				break
			}
			order := rng.Perm(len(all))
			some.same(t, file(firstOf, order[:n]...), file(firstOf, order[n:2*n]...))
			some.slower(t, file(firstOf, order[:n]...), file(slowerOf, order[n:2*n]...))
		}
		t.Log(some)
	}
}

// diffCounts is of how many pairs of the same program how many were called changed, and of how many that were made
// slower how many were found.
type diffCounts struct {
	what                          string
	pairs, changed, slowed, found int
}

func (c diffCounts) String() string {
	return fmt.Sprintf("%s: %d of %d pairs of the same program are called changed; a method made slower by 5 %% of all "+
		"CPU time is found in %d of %d", c.what, c.changed, c.pairs, c.found, c.slowed)
}

func (c *diffCounts) add(o diffCounts) {
	c.pairs, c.changed, c.slowed, c.found = c.pairs+o.pairs, c.changed+o.changed, c.slowed+o.slowed, c.found+o.found
}

func (c *diffCounts) same(t *testing.T, before, after []string) (r *diff.Result) {
	t.Helper()
	r = compareFiles(t, before, after)
	c.pairs++
	if r.Significant > 0 {
		c.changed++
		t.Logf("%s, same: %s%s", c.what, r.Verdict(), significant(r))
	}
	return r
}

func (c *diffCounts) slower(t *testing.T, before, after []string) {
	t.Helper()
	r := compareFiles(t, before, after)
	c.slowed++
	for _, ch := range r.Changes {
		if ch.Of == diff.OfTotal && strings.HasSuffix(ch.Name, ".price") {
			if ch.Significant && ch.Change > 0 {
				c.found++
				return
			}
			t.Logf("%s, slower: not found: %+.2f points, noise %.2f, %.1f times the variance of independent samples", c.what,
				100*ch.Change, 100*ch.Noise, ch.Inflation)
		}
	}
}

// ofJVM is a recording that says of which JVM it is: that of its folder.
type ofJVM struct {
	recording.Source
	folder string
}

func (s ofJVM) Info() recording.Info {
	i := s.Source.Info()
	i.JVMStart, i.Meta.PID, i.Meta.Host = time.Unix(1, 0), 1, s.folder
	return i
}

func compareFiles(t *testing.T, before, after []string) *diff.Result {
	t.Helper()
	c := diff.New()
	for side, names := range [][]string{before, after} {
		for _, name := range names {
			file, err := recording.Open(name, recording.Options{})
			if err == nil {
				err = c.AddSource(diff.Side(side), ofJVM{file, filepath.Dir(name)}, diff.Reading{})
				file.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	r, err := c.Compare(diff.Options{By: "method"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func significant(r *diff.Result) (text string) {
	for _, ch := range r.Changes {
		if ch.Significant {
			text += fmt.Sprintf("\n\t%s %s %.2f%% -> %.2f%%, noise %.2f, p %.4f", ch.Of, ch.Name, 100*ch.Before,
				100*ch.After, 100*ch.Noise, ch.P)
		}
	}
	return text
}
