package convert

import (
	"bytes"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goprof/output/format"
	"goprof/output/jfr"
	"goprof/output/recording"
	"goprof/profile"
)

// lived is a recording with a thread that starts and ends, a collection and an account.
func lived(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := jfr.NewWriter(&b, jfr.Options{ChunkLength: 10 * time.Millisecond})
	w.SetMeta(profile.Meta{Mode: profile.ModeCPU, Interval: time.Millisecond, PID: 7})
	w.SetJVM(jfr.JVM{PID: 7, Start: time.Unix(1_789_000_000, 0)})
	at := func(ms int) profile.Instant { return moment(time.Duration(ms) * time.Millisecond) }
	var errs [105]error
	for i := range 100 {
		errs[i] = w.Sample(&profile.Sample{At: at(i), Thread: threads[0], Stack: stacks[0]})
		switch i {
		case 20:
			errs[100] = w.ThreadStart(at(20), threads[1])
		case 40:
			errs[101] = w.Mark(at(38), 2*time.Millisecond, recording.MarkGC, "young (full)")
		case 60:
			errs[102] = w.ThreadEnd(at(60), threads[1])
		}
	}
	errs[103] = w.Account(at(100), &profile.Summary{Attempted: 100, Whole: 100, Samples: 100})
	errs[104] = w.Close(at(100))
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// told returns everything in a recording except samples.
func told(t *testing.T, src interface {
	recording.Lived
	recording.Marked
}) (list []string) {
	t.Helper()
	err := src.Lives(func(l recording.Life) error {
		list = append(list, fmt.Sprintf("%d %v %v", l.At.Wall-start, l.Thread, l.End))
		return nil
	})
	if err == nil {
		err = src.Marks(func(m recording.Mark) error {
			list = append(list, fmt.Sprintf("%d %v %s %s", m.At.Wall-start, m.For, m.Kind, m.Text))
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestOthersAreCarried: a new JFR file also has the events that are not samples. If one part is converted, it has only
// the events of that part.
func TestOthersAreCarried(t *testing.T) {
	first := open(t, lived(t), recording.Options{})
	want := told(t, first)
	if len(want) != 3 {
		t.Fatalf("%q", want)
	}
	second := open(t, converted(t, first, format.JFR, false), recording.Options{})
	if d := cmp.Diff(want, told(t, second)); d != "" {
		t.Error(d)
	}
	if s := second.Info().Summary; s == nil || s.Attempted != 100 {
		t.Errorf("account: %+v", s)
	}
	if a, b := first.Info(), second.Info(); a.JVM() == "" || a.JVM() != b.JVM() {
		t.Errorf("JVM %q, %q", a.JVM(), b.JVM())
	}
	part, err := (&recording.Filter{From: 30 * time.Millisecond, To: 50 * time.Millisecond,
		ExcludeThread: regexp.MustCompile("GC")}).Of(first)
	if err != nil {
		t.Fatal(err)
	}
	third := open(t, converted(t, part, format.JFR, false), recording.Options{})
	if d := cmp.Diff(want[2:], told(t, third)); d != "" {
		t.Error(d)
	}
}
