//go:build linux

package vitals

import (
	"strconv"
	"strings"
	"testing"

	"goprof/process/maybe"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// patient is one JVM that runs truth.Vitals, and goprof's view of it.
type patient struct {
	*jvmtest.JVM
	t *testing.T
	v *Vitals
}

func attach(t *testing.T, jdk jvmtest.JDK, options ...string) *patient {
	t.Helper()
	p := &patient{JVM: jvmtest.Start(t, jdk, "truth.Vitals", options...), t: t}
	s, err := session.Attach(p.PID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if p.v, err = Open(s); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.v.Close)
	return p
}

func (p *patient) read() *Reading {
	p.t.Helper()
	r, err := p.v.Read()
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// beans is what the JVM tells of itself: lines of a number and a name.
func (p *patient) beans(command string) map[string]uint64 {
	p.t.Helper()
	told := map[string]uint64{}
	for _, line := range p.Command(command) {
		number, name, _ := strings.Cut(line, " ")
		if n, err := strconv.ParseInt(number, 10, 64); err == nil && n >= 0 {
			told[name] = uint64(n)
		}
	}
	return told
}

// near fails if a fact is not known, or if it is off by more than slack from what the JVM said before and after.
func (p *patient) near(what string, got maybe.Value[uint64], before, after, slack uint64) {
	p.t.Helper()
	low, high := min(before, after), max(before, after)
	if n, ok := got.Get(); !ok || n+slack < low || n > high+slack {
		p.t.Errorf("%s is %v, the JVM said %d and then %d (%d may be missing)", what, got, before, after, slack)
	}
}

// collectorFlags are the flags that select a collector. A collector that a JDK refuses is left out.
var collectorFlags = map[string]string{"Serial": "UseSerialGC", "Parallel": "UseParallelGC", "G1": "UseG1GC",
	"ZGC": "UseZGC", "Shenandoah": "UseShenandoahGC", "CMS": "UseConcMarkSweepGC", "Epsilon": "UseEpsilonGC"}

// has reports whether a JDK has a collector (as Debian builds it).
func has(jdk jvmtest.JDK, collector string) bool {
	switch collector {
	case "ZGC", "Epsilon":
		return jdk.Version >= 11
	case "Shenandoah":
		return jdk.Version >= 11 && jdk.Label == ""
	case "CMS":
		return jdk.Version <= 11
	}
	return true
}

// oldPools are the names of the old generation's pool, by collector.
var oldPools = map[string]string{"Serial": "Tenured Gen", "Parallel": "PS Old Gen", "G1": "G1 Old Gen"}
