//go:build linux

package oracle

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// TestWallShares: a thread that sleeps for 30 ms and spins for 10 ms comes out as 3 to 1, or as what it has measured
// itself: on a busy machine both take longer.
func TestWallShares(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Alternating")
		s := attach(t, jvm.PID)
		again(t, func(t testing.TB) { wallShares(t, jvm, s) })
	})
}

func wallShares(t testing.TB, jvm *jvmtest.JVM, s *session.Session) {
	wanted := func(thread string) bool { return strings.HasPrefix(thread, "alternating ") }
	visits := make(chan session.Visit)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	done := make(chan error, 1)
	const interval = 5 * time.Millisecond
	var missed int64 // ticks that were not held
	go func() {
		_, sum, err := s.Record(ctx, session.RecordOptions{Mode: session.WallMode, Interval: interval,
			Threads: true, Wants: wanted, Visits: visits})
		checkAccount(t, &sum)
		missed = sum.Skipped
		done <- err
	}()
	got := map[profile.Weight]*alternated{profile.Samples: {}, profile.WallTime: {}}
	visit := func(sign int64) (looks int64) {
		seen := make(chan struct{})
		look := func(p *profile.Profile, sum *profile.Summary) {
			defer close(seen)
			for p.Meta.Weight = range got {
				got[p.Meta.Weight].add(p, sign)
			}
			looks = sum.Samples
		}
		select {
		case visits <- look:
			<-seen
		case <-ctx.Done():
			t.Fatal("the recording did not come to 600 looks")
		}
		return looks
	}
	// The program's clock and ours begin and end together, whatever else the machine does before.
	looks := visit(0)
	for looks == 0 {
		time.Sleep(10 * time.Millisecond)
		looks = visit(0)
	}
	begun := time.Now()
	times(t, jvm)
	first := visit(-1)
	apart := time.Since(begun) // by how much the program's time and ours may differ
	for looks = 0; looks < 600 && ctx.Err() == nil; looks = visit(0) - first {
		time.Sleep(50 * time.Millisecond)
	}
	ending := time.Now()
	slept, spun := times(t, jvm)
	visit(1)
	apart += time.Since(ending) + (time.Duration(slept+spun) - ending.Sub(begun)).Abs()
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	truth := struct{ slept, spun float64 }{slept, spun}
	want := truth.slept / (truth.slept + truth.spun)
	for weight, a := range got {
		share := float64(a.slept) / float64(a.slept+a.spun)
		t.Logf("%d looks, by %v: slept %.3f of the time, by its own clock %.3f", looks, weight, share, want)
		// 5 standard deviations of so many independent looks; but they come one for each 5 ms, of a period of 40.
		most := 5 * math.Sqrt(want*(1-want)/600)
		// Where the machine gave goprof no CPU, that time has no looks, and all of it is of what the thread did at its
		// end. If it had none either its own clock says that it span, and it sleeps as soon as it has one again.
		most += float64(time.Duration(missed)*interval+apart) / (truth.slept + truth.spun)
		if math.Abs(share-want) > most {
			t.Errorf("by %v: slept %.3f of the time, by its own clock %.3f", weight, share, want)
		}
		if a.other*10 > a.slept+a.spun {
			t.Errorf("by %v: %d, %d, and %d in neither", weight, a.slept, a.spun, a.other)
		}
	}
}

// alternated is what a recording says of the thread.
type alternated struct{ slept, spun, other int64 }

func (a *alternated) add(p *profile.Profile, sign int64) {
	p.Each(func(frames []profile.Frame, n int64) {
		n *= sign
		for _, f := range frames {
			switch f.Func.Name {
			case "truth.Alternating.rest":
				a.slept += n
				return
			case "truth.Alternating.work":
				a.spun += n
				return
			}
		}
		a.other += n
	})
}

// times is how long the thread has slept and spun since the question before.
func times(t testing.TB, jvm *jvmtest.JVM) (slept, spun float64) {
	t.Helper()
	lines := jvm.Command("times")
	if len(lines) != 1 {
		t.Fatalf("no times: %q", lines)
	}
	if _, err := fmt.Sscanf(lines[0], "TIMES %f %f", &slept, &spun); err != nil {
		t.Fatal(err)
	}
	return slept, spun
}
