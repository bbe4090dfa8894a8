package heat

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"goprof/profile"
)

// turning is a recording of CPU time, 100 samples a second. Each thread works on one handler for a while. From some
// time on, some samples are under another method.
func turning(seed uint64, length, turns, back time.Duration, share float64) *fake {
	f, n, rng := &fake{}, names{}, rand.New(rand.NewPCG(seed, 1))
	f.info.Timed = true
	f.info.Meta.Start, f.info.Meta.Duration, f.info.Meta.Interval = begin, length, 10*time.Millisecond
	handler := map[int]int{}
	for t := time.Duration(0); t < length; t += 10 * time.Millisecond {
		tid := rng.IntN(3)
		if rng.IntN(10) == 0 {
			handler[tid] = rng.IntN(4)
		}
		frames := []string{"shop.Main.run", fmt.Sprint("shop.Handler", handler[tid], ".serve"),
			fmt.Sprint("shop.Work", rng.IntN(20), ".step")}
		if t >= turns && t < back && rng.Float64() < share {
			frames = []string{"shop.Main.run", "shop.Audit.note", "java.net.Socket.read"}
		}
		f.samples = append(f.samples, profile.Sample{At: at(t + time.Duration(rng.IntN(1e6))), Count: 1,
			Thread: profile.Thread{TID: 10 + tid}, Stack: n.stack(frames...)})
	}
	return f
}

// TestChanges: each change is found at its time. A change that is later reversed has two times.
func TestChanges(t *testing.T) {
	const minute = time.Minute
	for name, c := range map[string]struct {
		turns, back time.Duration
		share       float64
	}{
		"a large share":          {23 * time.Second, minute, 0.4},
		"a small share":          {31 * time.Second, minute, 0.1},
		"late":                   {54 * time.Second, minute, 0.3},
		"some seconds":           {25 * time.Second, 33 * time.Second, 0.4},
		"from nearly the start":  {4 * time.Second, minute, 0.3},
		"a short time, all work": {40 * time.Second, 46 * time.Second, 0.9},
	} {
		moments, _, err := Changes(turning(3, minute, c.turns, c.back, c.share))
		if err != nil {
			t.Fatal(err)
		}
		want := []time.Duration{c.turns}
		if c.back < minute {
			want = append(want, c.back)
		}
		if len(moments) != len(want) {
			t.Errorf("%s: %d moments: %+v", name, len(moments), moments)
			continue
		}
		for i, m := range moments {
			if off := (m.From - want[i]).Abs(); off > time.Second || m.Changes[0].Own != "shop.Audit.note" ||
				(m.Changes[0].Change > 0) != (i == 0) || !m.At.Equal(begin.Add(m.From)) {
				t.Errorf("%s: %s: %+v", name, m.From, m.Changes[0])
			}
		}
	}
}

// TestNoChange: for a program that works in bursts and does not change, no change is reported.
func TestNoChange(t *testing.T) {
	for seed := range uint64(100) {
		moments, length, err := Changes(turning(seed, time.Minute, 0, 0, 0))
		if err != nil || len(moments) > 0 || length != time.Minute {
			t.Errorf("seed %d: %v %s %+v", seed, err, length, moments)
		}
	}
}

// standing is a recording of a minute in which each thread stays in one stack for a time of its own. The times of a
// thread are given, or drawn with a mean.
func standing(seed uint64, mode string, threads int, mean time.Duration, given ...time.Duration) *fake {
	f, n, rng := &fake{}, names{}, rand.New(rand.NewPCG(seed, 2))
	f.info.Timed = true
	f.info.Meta.Mode, f.info.Meta.Start, f.info.Meta.Duration = mode, begin, time.Minute
	f.info.Meta.Interval = max(20, time.Duration(4*threads)) * time.Millisecond
	next, in := make([]time.Duration, threads), make([]int, threads)
	for t := time.Duration(0); t < time.Minute; t += f.info.Meta.Interval {
		for th := range threads {
			for next[th] <= t {
				if in[th]++; mean > 0 {
					in[th] = rng.IntN(5)
					next[th] += time.Duration(rng.ExpFloat64() * float64(mean))
				} else if next[th] = time.Hour; in[th] <= len(given) {
					next[th] = given[in[th]-1]
				}
			}
			f.samples = append(f.samples, profile.Sample{At: at(t + time.Duration(rng.IntN(1e6))), Count: 1,
				Thread: profile.Thread{TID: 10 + th}, Stack: n.stack("shop.Main.run", fmt.Sprint("shop.Part", in[th]%2, ".work"))})
		}
	}
	return f
}

// TestLongCalls: if a thread leaves one long call for another, this is reported each time, if it is rare.
func TestLongCalls(t *testing.T) {
	for name, given := range map[string][]time.Duration{
		"once":            {30 * time.Second},
		"there and back":  {20 * time.Second, 40 * time.Second},
		"late":            {52 * time.Second},
		"a short call":    {25 * time.Second, 29 * time.Second},
		"three times":     {10 * time.Second, 25 * time.Second, 45 * time.Second},
		"early, for good": {5 * time.Second},
	} {
		for mode, threads := range map[string]int{profile.ModeCPU: 1, profile.ModeWall: 2} {
			moments, _, err := Changes(standing(1, mode, threads, 0, given...))
			if err != nil || len(moments) != len(given) {
				t.Errorf("%s, %s: %v %+v", name, mode, err, moments)
				continue
			}
			for i, m := range moments {
				if off := (m.From - given[i]).Abs(); off > time.Second || len(m.Changes) == 0 {
					t.Errorf("%s, %s: %+v", name, mode, m)
				}
			}
		}
	}
}

// TestBusyPools: in a pool, threads that move from one call of seconds to another are no change. For a single thread,
// each call that is longer than most is a change.
func TestBusyPools(t *testing.T) {
	for threads, mean := range map[int]time.Duration{1: time.Second, 3: 4 * time.Second, 10: 10 * time.Second,
		25: 10 * time.Second} {
		for seed := range uint64(3) {
			if moments, _, err := Changes(standing(seed, profile.ModeWall, threads, mean)); err != nil || len(moments) > 0 {
				t.Errorf("%d threads, %s, seed %d: %v %+v", threads, mean, seed, err, moments)
			}
		}
	}
}

func TestText(t *testing.T) {
	var b strings.Builder
	if err := Text(&b, turning(1, time.Minute, 20*time.Second, time.Hour, 0.5), Told{Name: "out.jfr"}); err != nil {
		t.Fatal(err)
	}
	local := begin.Add(20 * time.Second).Local().Format(time.TimeOnly)
	first, rest, _ := strings.Cut(b.String(), "\n")
	if !strings.HasPrefix(first, "from "+local+" (20s) on: +") ||
		!strings.Contains(first, "shop.Audit.note, in java.net.Socket.read") {
		t.Error(b.String())
	}
	if !strings.Contains(rest, ": goprof diff out.jfr --before 0s-20s --after 20s-\n") {
		t.Error(b.String())
	}
}
