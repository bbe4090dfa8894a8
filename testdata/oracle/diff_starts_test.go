//go:build linux

package oracle

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"goprof/output/diff"
	"goprof/output/recording"
	"goprof/testdata/jvmtest"
)

// TestDiffStarts measures by how much two starts of one program differ, over several programs: the figures by which
// diff ranks the changes of one recording a side (output/diff/usual.go). Recordings stay in the folder
// GOPROF_DIFF_KEEP, as PROGRAM.JDK.NUMBER.jfr, and all that are there are compared. Those of programs of others may be
// put there, too:
//
//	GOPROF_DIFF_KEEP=/tmp/starts GOPROF_DIFF_ROUNDS=4 go test ./testdata/oracle -run TestDiffStarts -v -timeout 2h
func TestDiffStarts(t *testing.T) {
	folder, rounds := os.Getenv("GOPROF_DIFF_KEEP"), envNumber("GOPROF_DIFF_ROUNDS", 0)
	if folder == "" {
		t.Skip("this measures how starts differ, which takes recordings: GOPROF_DIFF_KEEP=DIR GOPROF_DIFF_ROUNDS=4")
	}
	if rounds > 0 {
		jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
			for range rounds {
				for _, p := range leafPrograms {
					recordStart(t, jdk, p, folder)
				}
			}
		})
	}
	programs := keptStarts(t, folder)
	called, pairs := 0, 0
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		m := measureStarts(t, programs[name])
		t.Logf("%-14s %2d starts, %3d pairs: largest change of a pair, median and most, in points: %s; likely in %d pairs",
			name, len(programs[name]), m.pairs, m.text(), m.likely)
		called, pairs = called+m.likely, pairs+m.pairs
	}
	t.Logf("%d programs: some change is called likely in %d of %d pairs of starts of one program", len(programs), called,
		pairs)
}

// recordStart starts a program, and records it when it has run for a while.
func recordStart(t *testing.T, jdk jvmtest.JDK, p leafProgram, folder string) {
	jvm := jvmtest.Start(t, jdk, p.line[0], p.line[1:]...)
	defer jvm.Quit()
	time.Sleep(5 * time.Second)
	s := attach(t, jvm.PID)
	name := fmt.Sprintf("%s.%s.%d.jfr", p.name, jdk, time.Now().UnixNano())
	recordTo(t, filepath.Join(folder, name), s, time.Millisecond, 8_000, 0)
}

// keptStarts are the recordings of each program and JDK.
func keptStarts(t *testing.T, folder string) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.*.*.jfr"))
	if err != nil {
		t.Fatal(err)
	}
	programs := make(map[string][]string)
	for _, file := range files {
		parts := strings.Split(filepath.Base(file), ".")
		name := parts[0] + " on " + parts[1]
		programs[name] = append(programs[name], file)
	}
	maps.DeleteFunc(programs, func(_ string, files []string) bool { return len(files) < 2 })
	return programs
}

// ofProgram are a program's own threads. What the JVM's threads do depends on how long the program has run.
var ofProgram = regexp.MustCompile(`^(main|work) `)

// shareBands are the bands of shares in which changes are looked at apart.
var shareBands = []float64{0.005, 0.02, 0.05, 0.15, 0.4, 1.01}

// startsOf is by how much the starts of a program differ.
type startsOf struct {
	pairs, likely int
	largest       [][]float64 // of each pair, by band: the largest change, in points
}

func measureStarts(t *testing.T, files []string) (m startsOf) {
	t.Helper()
	m.largest = make([][]float64, len(shareBands)-1)
	for i := range files {
		for j := range i {
			c := diff.New()
			for side, name := range []string{files[i], files[j]} {
				addProgram(t, c, diff.Side(side), name)
			}
			r, err := c.Compare(diff.Options{By: "method"})
			if err != nil {
				t.Fatal(err)
			}
			m.pairs++
			if r.Likely > 0 {
				m.likely++
			}
			m.add(t, r)
		}
	}
	return m
}

func addProgram(t *testing.T, c *diff.Comparison, to diff.Side, name string) {
	t.Helper()
	file, err := recording.Open(name, recording.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	own, err := (&recording.Filter{Thread: ofProgram}).Of(file)
	if err = cmp.Or(err, c.AddSource(to, ofJVM{own, name}, diff.Reading{})); err != nil {
		t.Fatal(err)
	}
}

func (m *startsOf) add(t *testing.T, r *diff.Result) {
	largest := make([]float64, len(m.largest))
	for _, ch := range r.Changes {
		band, _ := slices.BinarySearch(shareBands, (ch.Before+ch.After)/2)
		if band--; band >= 0 && band < len(largest) {
			largest[band] = max(largest[band], 100*math.Abs(ch.Change))
		}
		if envNumber("GOPROF_DIFF_DUMP", 0) > 0 && (ch.Before+ch.After)/2 > 0.003 {
			t.Logf("ITEM %s %.5f %.5f %d %d %s", ch.Of, ch.Before, ch.After, r.Before.Looks, r.After.Looks, ch.Name)
		}
	}
	for band, most := range largest {
		m.largest[band] = append(m.largest[band], most)
	}
}

func (m *startsOf) text() (text string) {
	for band, all := range m.largest {
		slices.Sort(all)
		text += fmt.Sprintf("  to %.0f%% %.1f %.1f", 100*shareBands[band+1], all[len(all)/2], all[len(all)-1])
	}
	return text
}
