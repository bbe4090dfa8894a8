//go:build linux

package oracle

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"goprof/sampler/session"
	"goprof/testdata/jvmtest"
)

// oneInterval is a fifth of that of TestDiffPairs: a recording of 10,000 samples takes 2 s.
const oneInterval = time.Second / 5000

// warmingUp is how many recordings are thrown away: while the JVM still compiles the program, it does differ from what
// comes after.
const warmingUp = 3

// TestDiffOneJVM measures how often a comparison of two recordings of one JVM is wrong, with many short recordings one
// after the other: two for each pair of the same program, then one for each pair in which a method was made slower by
// 5 % of all CPU time. No recording is in two pairs of one sort.
//
//	GOPROF_DIFF_ONE=20 go test ./testdata/oracle -run TestDiffOneJVM -v
func TestDiffOneJVM(t *testing.T) {
	pairs := envNumber("GOPROF_DIFF_ONE", 0)
	if pairs == 0 {
		t.Skip("this measures how often a comparison is wrong, which takes pairs: GOPROF_DIFF_ONE=20")
	}
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Canary")
		c := canaryOf{s: attach(t, jvm.PID), jvm: jvm, folder: t.TempDir()}
		c.record(t, "warming up", warmingUp)
		first, second := c.record(t, "first", pairs), c.record(t, "second", pairs)
		jvm.Command("slower 5")
		slower := c.record(t, "slower", pairs)
		counts := diffCounts{what: "one JVM"}
		for i := range pairs {
			counts.same(t, first[i:i+1], second[i:i+1])
			counts.slower(t, first[i:i+1], slower[i:i+1])
		}
		t.Log(counts)
		jvm.Quit()
	})
}

// canaryOf is a JVM that is recorded again and again.
type canaryOf struct {
	s      *session.Session
	jvm    *jvmtest.JVM
	folder string
}

// record makes n recordings, and prints what the program says of itself.
func (c *canaryOf) record(t *testing.T, what string, n int) (files []string) {
	t.Helper()
	c.jvm.Command("mark")
	for i := range n {
		name := filepath.Join(c.folder, fmt.Sprintf("%s-%d.jfr", what, i))
		recordTo(t, name, c.s, oneInterval, envNumber("GOPROF_DIFF_SAMPLES", 10_000))
		files = append(files, name)
	}
	t.Log(what, c.jvm.Command("truth")[0])
	return files
}
