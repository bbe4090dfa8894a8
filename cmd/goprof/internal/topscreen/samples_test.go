//go:build linux

package topscreen

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestTopRecordTwice: a recording that is ended before its segment has begun ends at once. If it went on, the screen
// would not tell of it.
func TestTopRecordTwice(t *testing.T) {
	samples := newSamples(nil, Options{Rate: 20, Window: time.Second, Output: filepath.Join(t.TempDir(), "a.jfr")}, 1)
	for range 2 {
		if _, err := samples.record(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if file := samples.begin(stop); file == nil || ctx.Err() == nil {
		t.Errorf("recording %v, the segment's context %v", file, ctx.Err())
	}
}

// TestTopRecordingsHaveNames: a second recording does not replace the first.
func TestTopRecordingsHaveNames(t *testing.T) {
	for name, want := range map[string]string{"x.jfr": "x-2.jfr", "a.b/x.pb.gz": "a.b/x-2.pb.gz", "x-%t.jfr": "x-%t.jfr",
		"x.gz": "x-2.gz", "x-%p.html": "x-%p-2.html"} {
		if first, second := numbered(name, 1), numbered(name, 2); first != name || second != want {
			t.Errorf("%s: %s, then %s", name, first, second)
		}
	}
}

// TestTopRecordLate: a recording gets no segment any more. top says so, and leaves no file.
func TestTopRecordLate(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"a.jfr", "a.pb.gz", "a.html"} {
		samples := newSamples(nil, Options{Rate: 20, Window: time.Second, Output: filepath.Join(folder, name)}, 1)
		if _, err := samples.record(); err != nil {
			t.Fatal(err)
		}
		over, stop := context.WithCancel(t.Context())
		stop()
		samples.run(over, 0)
		if told := samples.takeTold(); !slices.Equal(told, []string{nothingRecorded}) {
			t.Errorf("%s: it said %q", name, told)
		}
		if left, _ := filepath.Glob(filepath.Join(folder, "*")); len(left) > 0 {
			t.Errorf("%s: left is %q", name, left)
		}
	}
}
