package heat

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"goprof/profile"
)

// turning is a recording of CPU time, 100 samples a second. Each thread works on one handler for a while. From a moment
// on, some samples are below another method.
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

// TestChanges: each change is found at its time, and what changes back has two moments.
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

// TestNoChange: recordings of one program that works in bursts, and does not change, are silent.
func TestNoChange(t *testing.T) {
	for seed := range uint64(100) {
		moments, length, err := Changes(turning(seed, time.Minute, 0, 0, 0))
		if err != nil || len(moments) > 0 || length != time.Minute {
			t.Errorf("seed %d: %v %s %+v", seed, err, length, moments)
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
