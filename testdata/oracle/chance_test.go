//go:build linux

package oracle

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// try is one of the tries of a measurement. It keeps what is found wrong. Fatal and Skip end the test itself.
type try struct {
	testing.TB
	wrong []string
}

func (t *try) Errorf(format string, args ...any) {
	t.wrong = append(t.wrong, fmt.Sprintf(format, args...))
}
func (t *try) Error(args ...any) { t.wrong = append(t.wrong, fmt.Sprintln(args...)) }
func (t *try) Failed() bool      { return len(t.wrong) > 0 || t.TB.Failed() }

// mostTries is how often a measurement is made until nothing is wrong. A fault of goprof's is there each time. What is
// wrong by chance in one of a hundred tries fails one run in a million. The long form has one try, of so much more.
const mostTries = 3

// again makes a measurement that depends on chance, and on how much of the CPUs others want: shares, times, and how
// much is lost. It is made once more if something is wrong. Facts, as a stack that is wrong, are not for it.
func again(t *testing.T, measure func(t testing.TB)) {
	t.Helper()
	againAfter(t, 3*time.Second, measure) // a machine that had no CPU for seconds may have some then
}

func againAfter(t *testing.T, rest time.Duration, measure func(t testing.TB)) {
	t.Helper()
	for n := 1; ; n++ {
		one := &try{TB: t}
		measure(one)
		if len(one.wrong) > 0 && (n == mostTries || longForm) {
			for _, wrong := range one.wrong {
				t.Error(wrong)
			}
		}
		if len(one.wrong) == 0 || t.Failed() {
			return
		}
		t.Logf("try %d: %q", n, one.wrong)
		time.Sleep(time.Duration(n) * rest)
	}
}

// fact is for what is wrong once and for all, in a measurement that is made again.
func fact(t testing.TB) testing.TB {
	if one, ok := t.(*try); ok {
		return one.TB
	}
	return t
}

// atMost is how many of n may be what a share of all are. Of few there may be more by chance: more than this are so in
// less than one of a million runs (a Poisson distribution). The long form has none to spare.
func atMost(share float64, n int) int {
	mean := share * float64(n)
	if longForm {
		return int(mean)
	}
	return int(mean + 5*math.Sqrt(mean) + 3)
}

// TestAgain: what is wrong once or twice is forgiven, and what is wrong each time is not.
func TestAgain(t *testing.T) {
	if longForm {
		t.Skip("the long form has one try")
	}
	if n := atMost(0.005, 1000); n < 15 || n > 25 || atMost(0, 1000) > 3 {
		t.Errorf("%d of 1000, %d of none", n, atMost(0, 1000))
	}
	runs := 0
	againAfter(t, 0, func(t testing.TB) {
		if runs++; runs < mostTries-1 {
			t.Errorf("try %d", runs)
		}
	})
	if runs != mostTries-1 {
		t.Errorf("%d tries", runs)
	}
	one := &try{TB: t}
	one.Errorf("wrong: %d", 7)
	if one.Error(8); !one.Failed() || len(one.wrong) != 2 || one.wrong[0] != "wrong: 7" {
		t.Errorf("%q", one.wrong)
	}
}
