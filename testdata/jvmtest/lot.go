package jvmtest

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
)

// lot is the seed of all draws of this run.
var lot = sync.OnceValue(func() uint64 {
	if of := os.Getenv("GOPROF_LOT"); of != "" {
		seed, err := strconv.ParseUint(of, 10, 64)
		if err != nil {
			panic("GOPROF_LOT=" + of + " is no number")
		}
		return seed
	}
	return rand.Uint64N(1_000_000)
})

// all tells whether nothing is left out: with GOPROF_PROVE, and where GOPROF_JDKS names what to test.
func all() bool { return os.Getenv("GOPROF_JDKS") != "" || os.Getenv("GOPROF_PROVE") != "" }

// Drawn are n of the cases of a test that are alike, drawn by lot, in their order. A failed test tells the seed:
// GOPROF_LOT draws the same ones again. In make prove, and where GOPROF_JDKS names some, they are all. A drawn case
// must not skip; ForDrawnJDK draws again.
func Drawn[T any](t testing.TB, n int, cases []T) []T {
	t.Helper()
	if all() || n >= len(cases) {
		return cases
	}
	of := fnv.New64a()
	fmt.Fprint(of, t.Name())
	drawn := rand.New(rand.NewPCG(lot(), of.Sum64())).Perm(len(cases))[:n]
	slices.Sort(drawn)
	t.Logf("of %d cases these are drawn by lot: %d (GOPROF_LOT=%d draws them again)", len(cases), drawn, lot())
	some := make([]T, n)
	for i, at := range drawn {
		some[i] = cases[at]
	}
	return some
}
