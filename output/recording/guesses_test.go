package recording

import (
	"bytes"
	"maps"
	"testing"
	"time"

	"goprof/output"
	"goprof/output/jfr"
	"goprof/profile"
)

// TestGuesses: a JFR file shows which leaves are guesses. If a compiled method has many, they count for the method in
// sums of the file.
func TestGuesses(t *testing.T) {
	crunch, mix := &profile.Func{Name: "pek.Pek.crunch"}, &profile.Func{Name: "pek.Pek.mix"}
	for guessed, want := range map[int]map[string]int64{
		30: {"pek.Pek.crunch": 80, "pek.Pek.mix": 20},
		5:  {"pek.Pek.crunch": 75, "pek.Pek.mix": 25},
	} {
		var b bytes.Buffer
		w := jfr.NewWriter(&b, jfr.Options{})
		w.SetMeta(profile.Meta{PID: 7, Mode: profile.ModeCPU, Weight: profile.Samples})
		at := func(i int) profile.Instant {
			d := int64(i) * int64(time.Millisecond)
			return profile.Instant{Wall: 1_790_000_000_000_000_000 + d, Ticks: int64(time.Hour) + d}
		}
		for i := range 100 {
			stack := &profile.Stack{Frames: []profile.Frame{{Func: mix, Kind: profile.Inlined},
				{Func: crunch, Kind: profile.C2}}}
			if i < guessed {
				stack.Frames[0].Sure = profile.Guessed
			} else if i >= guessed+20 {
				stack.Frames = stack.Frames[1:]
			}
			if err := w.Sample(&profile.Sample{At: at(i), Stack: stack, Thread: profile.Thread{TID: 1}, CPU: 1}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(at(100)); err != nil {
			t.Fatal(err)
		}
		f, err := Open(Stdin, Options{Stdin: &b})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		g, err := Guesses(f)
		if err != nil || g.Most() != int64(guessed) || g.Much(crunch) != (guessed == 30) || g.Much(mix) || g.Much(nil) {
			t.Errorf("%d guesses in the compiled method, not %d: %v", g.Most(), guessed, err)
		}
		src, err := Settled(f)
		if err != nil {
			t.Fatal(err)
		}
		each := map[string]int64{}
		for range 2 { // the second reading must have the same result
			clear(each)
			if err := src.Each(func(s *profile.Sample) error {
				each[s.Stack.Frames[0].Func.Name] += s.Looks()
				return nil
			}); err != nil || !maps.Equal(each, want) {
				t.Errorf("%d guesses: samples end in %v, not %v: %v", guessed, each, want, err)
			}
		}
		tree, err := TreeOf(f, SumOptions{})
		if err != nil {
			t.Fatal(err)
		}
		table, err := output.NewReport(tree, "method")
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range table.Rows {
			if row.Self != want[row.Name] {
				t.Errorf("%d guesses: %s has %d by itself, not %d", guessed, row.Name, row.Self, want[row.Name])
			}
		}
		if moved := int64(guessed); guessed == 30 && table.Unnamed != moved || guessed == 5 && table.Unnamed != 0 {
			t.Errorf("%d guesses: the report says that %d are not named", guessed, table.Unnamed)
		}
	}
}
