package diff

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"goprof/testdata/jvmtest"
)

// start returns the program in one start of its JVM. The compiler decides differently about some methods, which changes
// the shares of their stacks. The shares of the method that may be slowed change, too.
func (p *program) start(rng *rand.Rand, spread, some float64) *program {
	q := &program{stacks: p.stacks}
	sum := 0.0
	for _, share := range p.shares {
		if rng.Float64() < some {
			share *= math.Exp(spread * rng.NormFloat64())
		}
		q.shares = append(q.shares, share)
		sum += share
	}
	for i := range q.shares {
		q.shares[i] /= sum
	}
	return q
}

// TestStarts prints how often a comparison is wrong if each side has several recordings and starts differ.
//
//	GOPROF_DIFF_PAIRS=500 go test ./output/diff -run TestStarts -v -timeout 1h
func TestStarts(t *testing.T) {
	jvmtest.NotQuick(t, jvmtest.TakesLong)
	pairs := 4
	if text := os.Getenv("GOPROF_DIFF_PAIRS"); text != "" {
		pairs, _ = strconv.Atoi(text)
	}
	const samples = 10_000
	same, m := newProgram(), models[0]
	slower := same.slower(0.05)
	for _, c := range []struct {
		name         string
		spread, some float64
		runs         []int
	}{
		{"no start differs", 0, 0, []int{2, 3, 5}},
		{"each stack differs by 10 %", 0.1, 1, []int{1, 2, 3, 5}},
		{"one stack in ten differs by half", 0.5, 0.1, []int{1, 2, 3, 5}},
	} {
		if os.Getenv("GOPROF_DIFF_PAIRS") == "" {
			c.runs = c.runs[:2]
		}
		for _, n := range c.runs {
			t.Run(fmt.Sprintf("%s, %d a side", c.name, n), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(3, uint64(n)))
				record := func(to *Comparison, side Side, p *program) {
					for range n {
						s := m.record(p.start(rng, c.spread, c.some), samples, rng)
						s.starts = true
						if err := to.AddSource(side, s, Reading{}); err != nil {
							t.Fatal(err)
						}
					}
				}
				of := func(after *program) *Result {
					both := New()
					record(both, Before, same)
					record(both, After, after)
					r, err := both.Compare(Options{By: "method"})
					if err != nil {
						t.Fatal(err)
					}
					return r
				}
				called, found := 0, 0
				for range pairs {
					if of(same).Significant > 0 {
						called++
					}
					if finds(of(slower)) {
						found++
					}
				}
				t.Logf("%-34s %d a side: called changed %3d of %d; 5 %% of all time found in %3d", c.name, n, called, pairs, found)
				if called > int(math.Ceil(Risk*float64(pairs)))+1 {
					t.Errorf("%d of %d pairs of the same program are called changed", called, pairs)
				}
			})
		}
	}
}
