//go:build linux

package oracle

import (
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"goprof/output/diff"
	"goprof/output/recording"
	"goprof/profile"
)

// TestDiffParts measures how often a comparison of two recordings of one JVM is wrong, with a long recording of a
// program that does the same all the time. Each two parts of GOPROF_DIFF_SAMPLES samples, one after the other, are a
// pair of the same program. No sample is in two pairs. The method of javac that has most samples by its own code is
// then made slower in the second part, by 5 % of all CPU time: of the other samples so many are left out, by chance,
// that its share becomes as large.
//
// Only the program's own threads are taken, and only what comes after five minutes: what compilers and collectors do
// changes from minute to minute, and then the program is not the same twice.
//
//	scripts/hour.sh && GOPROF_DIFF_FILE=build/hour/hour.jfr go test ./testdata/oracle -run TestDiffParts -v
func TestDiffParts(t *testing.T) {
	name := os.Getenv("GOPROF_DIFF_FILE")
	if name == "" {
		t.Skip("this measures how often a comparison is wrong, which takes a long recording: GOPROF_DIFF_FILE=hour.jfr")
	}
	file, err := recording.Open(name, recording.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p := &diffParts{t: t, each: envNumber("GOPROF_DIFF_SAMPLES", 10_000), rng: rand.New(rand.NewPCG(1, 2)),
		counts: diffCounts{what: "parts of one recording"}}
	for side := range p.parts {
		p.parts[side].info = file.Info()
		p.parts[side].info.JVMStart = time.Unix(1, 0)
	}
	wanted := recording.Filter{From: 5 * time.Minute, Thread: regexp.MustCompile("^(main|beside) ")}
	own, err := wanted.Of(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := own.Each(p.add); err != nil {
		t.Fatal(err)
	}
	t.Log(p.counts)
}

// diffParts cuts a recording into pairs of parts.
type diffParts struct {
	t      *testing.T
	each   int
	rng    *rand.Rand
	parts  [2]part
	counts diffCounts
}

func (p *diffParts) add(s *profile.Sample) error {
	side := &p.parts[0]
	if len(side.samples) >= p.each {
		side = &p.parts[1]
	}
	side.add(s)
	if len(p.parts[1].samples) >= p.each {
		p.compare()
		for i := range p.parts {
			p.parts[i].samples = p.parts[i].samples[:0]
		}
	}
	return nil
}

func (p *diffParts) compare() {
	r := p.judge(&p.parts[1])
	p.counts.pairs++
	if r.Significant > 0 {
		p.counts.changed++
		p.t.Logf("pair %d: %s%s", p.counts.pairs, r.Verdict(), significant(r))
	}
	most := diff.Change{}
	for _, ch := range r.Changes {
		if ch.Of == diff.OfSelf && strings.HasPrefix(ch.Name, "com.sun.tools.") && ch.Before > most.Before {
			most = ch
		}
	}
	if most.Name == "" {
		p.t.Fatal("the parts have no sample of javac")
	}
	p.slower(most.Name)
}

// slower makes a method of the second part slower.
func (p *diffParts) slower(name string) {
	has := func(s *profile.Sample) bool { return len(s.Stack.Frames) > 0 && s.Stack.Frames[0].Func.Name == name }
	in := 0
	for i := range p.parts[1].samples {
		if has(&p.parts[1].samples[i]) {
			in++
		}
	}
	share := float64(in) / float64(len(p.parts[1].samples))
	aim := (share + 0.05) / 1.05
	keep := share / (1 - share) * (1 - aim) / aim
	slowed := part{info: p.parts[1].info}
	for i := range p.parts[1].samples {
		if s := &p.parts[1].samples[i]; has(s) || p.rng.Float64() < keep {
			slowed.samples = append(slowed.samples, *s)
		}
	}
	p.counts.slowed++
	for _, ch := range p.judge(&slowed).Changes {
		if ch.Name == name && ch.Of == diff.OfSelf {
			if ch.Significant && ch.Change > 0 {
				p.counts.found++
			} else {
				p.t.Logf("pair %d, %s slower: not found: %+.2f points, noise %.2f", p.counts.pairs, name, 100*ch.Change,
					100*ch.Noise)
			}
		}
	}
}

func (p *diffParts) judge(after *part) *diff.Result {
	c := diff.New()
	for side, src := range []*part{&p.parts[0], after} {
		if err := c.AddSource(diff.Side(side), src, diff.Reading{}); err != nil {
			p.t.Fatal(err)
		}
	}
	r, err := c.Compare(diff.Options{By: "method"})
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// part is a part of a recording.
type part struct {
	info    recording.Info
	samples []profile.Sample
}

func (p *part) Info() recording.Info { return p.info }

func (p *part) Each(visit func(*profile.Sample) error) error {
	for i := range p.samples {
		s := p.samples[i]
		if err := visit(&s); err != nil {
			return err
		}
	}
	return nil
}

func (p *part) add(s *profile.Sample) {
	kept := *s
	kept.Stack = &profile.Stack{Frames: slices.Clone(s.Stack.Frames), Truncated: s.Stack.Truncated}
	p.samples = append(p.samples, kept)
}
