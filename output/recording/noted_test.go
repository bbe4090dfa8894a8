package recording

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"goprof/output/jfr"
	"goprof/profile"
)

// TestNoted: marks and lives of threads come from the first reading of a file, or from a second one if there are too
// many. Both have the same result.
func TestNoted(t *testing.T) {
	for _, n := range []int{2, maxNoted, maxNoted + 1} {
		var b bytes.Buffer
		w := jfr.NewWriter(&b, jfr.Options{})
		at := func(i int) profile.Instant {
			d := int64(i) * int64(time.Millisecond)
			return profile.Instant{Wall: 1_790_000_000_000_000_000 + d, Ticks: int64(time.Hour) + d}
		}
		stack := &profile.Stack{Frames: []profile.Frame{{Func: &profile.Func{Name: "shop.Cart.add"}, Kind: profile.C2}}}
		err := w.Sample(&profile.Sample{At: at(0), Stack: stack, CPU: 1})
		for i := 0; i < n && err == nil; i++ {
			if err = w.ThreadStart(at(i), profile.Thread{TID: i%1000 + 1}); err == nil {
				err = w.Mark(at(i), time.Duration(i), MarkGC, fmt.Sprint(i%10))
			}
		}
		if err == nil {
			err = w.Close(at(n))
		}
		if err != nil {
			t.Fatal(err)
		}
		f, err := Open(Stdin, Options{Stdin: &b})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if got := f.source.(*jfrFile).noted.tooMany; got != (n > maxNoted) {
			t.Errorf("%d are too many: %v", n, got)
		}
		lives, marks := 0, 0
		if err := f.Lives(func(l Life) error {
			if l.At != at(lives) || l.Thread.TID != lives%1000+1 || l.End {
				return fmt.Errorf("life %d is %+v", lives, l)
			}
			lives++
			return nil
		}); err != nil || lives != n {
			t.Errorf("%d lives of %d, %v", lives, n, err)
		}
		if err := f.Marks(func(m Mark) error {
			if m.At != at(marks) || m.Text != fmt.Sprint(marks%10) || m.For != time.Duration(marks) || m.Kind != MarkGC {
				return fmt.Errorf("mark %d is %+v", marks, m)
			}
			marks++
			return nil
		}); err != nil || marks != n {
			t.Errorf("%d marks of %d, %v", marks, n, err)
		}
	}
}
