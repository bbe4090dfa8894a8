//go:build linux

package jvmtest

import (
	"slices"
	"strconv"
	"testing"
)

// TestDrawn: a test draws the same cases as often as it asks, others draw others, and in the long form there are all.
func TestDrawn(t *testing.T) {
	t.Setenv("GOPROF_JDKS", "")
	t.Setenv("GOPROF_PROVE", "")
	cases := []int{10, 11, 12, 13, 14, 15}
	times := map[int]int{}
	for i := range 60 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			drawn := Drawn(t, 2, cases)
			if len(drawn) != 2 || drawn[0] >= drawn[1] || !slices.Equal(drawn, Drawn(t, 2, cases)) {
				t.Error(drawn)
			}
			for _, c := range drawn {
				times[c]++
			}
		})
	}
	for _, c := range cases { // one of them in none of 60 draws: less than one run in a billion
		if times[c] == 0 {
			t.Errorf("%d was never drawn: %v", c, times)
		}
	}
	if got := Drawn(t, 6, cases); !slices.Equal(got, cases) {
		t.Error(got)
	}
	t.Setenv("GOPROF_PROVE", "1")
	if got := Drawn(t, 1, cases); !slices.Equal(got, cases) {
		t.Error(got)
	}
}

// TestDrawsAnotherJDK: if a test skips on the drawn JDK, it runs on another one. If it skips on all, it says so.
func TestDrawsAnotherJDK(t *testing.T) {
	for _, unset := range []string{"GOPROF_JDKS", "GOPROF_PROVE", "GOPROF_REQUIRE_JVM"} {
		t.Setenv(unset, "")
	}
	jdks := []JDK{{Version: 8}, {Version: 17}, {Version: 25}}
	for _, works := range []int{0, 8, 17, 25} {
		var tried []int
		skips := false
		t.Run("works with "+strconv.Itoa(works), func(t *testing.T) {
			defer func() { skips = t.Skipped() }()
			forDrawn(t, jdks, func(t *testing.T, jdk JDK) {
				if tried = append(tried, jdk.Version); jdk.Version != works {
					t.Skip("this test only needs a subtest that skips")
				}
			})
		})
		tested := slices.Contains(tried, works)
		if tested != (works > 0) || tested && tried[len(tried)-1] != works || !tested && len(tried) != 3 || skips == tested {
			t.Errorf("works with %d: tried with %d, skipped: %v", works, tried, skips)
		}
	}
}
