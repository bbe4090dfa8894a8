package convert

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"goprof/output"
	"goprof/output/flame"
	"goprof/output/format"
	"goprof/output/jfr"
	"goprof/output/pprof"
	"goprof/output/recording"
	"goprof/profile"
)

// TestCollapsedIsDrawnAsItIs: convert and flame make the same page from a collapsed file.
func TestCollapsedIsDrawnAsItIs(t *testing.T) {
	text := []byte("[main tid=7];a.B.c 5000000\n[main tid=7];a.B.d_[j] 2000000\n[not sampled] 3000000\n")
	for _, f := range []format.Format{format.HTML, format.SVG} {
		file := open(t, text, recording.Options{})
		tree, err := recording.TreeOf(file, recording.SumOptions{Threads: true})
		if err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		draw := flame.Page
		if f == format.SVG {
			draw = flame.SVG
		}
		if err := draw(&want, tree.Shaped(output.Shape{}.Drawn()), flame.Options{}); err != nil {
			t.Fatal(err)
		}
		got := converted(t, file, f, true)
		if !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%v differs", f)
		}
	}
	if got := string(converted(t, open(t, text, recording.Options{}), format.JSON, true)); !strings.Contains(got, "cpu") {
		t.Errorf("that time is counted is lost: %s", got)
	}
	got := converted(t, open(t, text, recording.Options{}), format.Collapsed, true)
	if bytes.Contains(got, []byte("tid=?")) {
		t.Errorf("%s", got)
	}
}

// valuesOf returns the types of the values in a pprof profile, and their sums.
func valuesOf(t *testing.T, data []byte) (types []string, sums []int64) {
	t.Helper()
	file, err := pprof.Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	sums = make([]int64, len(file.Types))
	err = file.Each(func(_ *profile.Sample, values []int64) error {
		for i, n := range values {
			sums[i] += n
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return file.Types, sums
}

// TestWeightIsAskedFor: pprof and speedscope have the weight that --weight asks for.
func TestWeightIsAskedFor(t *testing.T) {
	data := flight(t, 100, true)
	cpu, looks := profile.CPUTime, profile.Samples
	types, sums := valuesOf(t, converted(t, open(t, data, recording.Options{Weight: &cpu}), format.PProf, false))
	if !slices.Contains(types, "cpu/nanoseconds") || sums[1] != int64(100*time.Millisecond) {
		t.Errorf("%q %v", types, sums)
	}
	types, sums = valuesOf(t, converted(t, open(t, data, recording.Options{}), format.PProf, false))
	if !slices.Contains(types, "wall/nanoseconds") || sums[1] != int64(100*time.Millisecond) {
		t.Errorf("%q %v", types, sums)
	}
	for _, c := range []struct {
		o    recording.Options
		unit string
	}{{recording.Options{Weight: &looks}, `"none"`}, {recording.Options{}, `"nanoseconds"`}} {
		got := string(converted(t, open(t, data, c.o), format.Speedscope, false))
		if !strings.Contains(got, `"unit":`+c.unit) {
			t.Errorf("no unit %s in %.600s", c.unit, got[strings.Index(got, "profiles"):])
		}
	}
}

// TestCountsAreNotMadeUp: a file with times and no counts becomes a profile with times and no counts.
func TestCountsAreNotMadeUp(t *testing.T) {
	text := []byte("a.B.c 5000000\na.B.d 2000000\n[not sampled] 3000000\n")
	data := converted(t, open(t, text, recording.Options{}), format.PProf, false)
	types, sums := valuesOf(t, data)
	if !slices.Equal(types, []string{"cpu/nanoseconds"}) || sums[0] != 10_000_000 {
		t.Errorf("%q %v", types, sums)
	}
	again := open(t, data, recording.Options{})
	if i := again.Info(); i.Counts() || i.Meta.Weight != profile.CPUTime {
		t.Errorf("%+v", i)
	}
	got := string(converted(t, again, format.Collapsed, false))
	if want := "a.B.c_[j] 5000000"; !strings.Contains(got, want) && !strings.Contains(got, "a.B.c 5000000") {
		t.Errorf("%s", got)
	}
}

// TestUnknownStates: an event without a thread's state has no state in any format.
func TestUnknownStates(t *testing.T) {
	var b bytes.Buffer
	w := jfr.NewWriter(&b, jfr.Options{})
	w.SetMeta(profile.Meta{Mode: profile.ModeWall, Interval: time.Millisecond})
	for i := range 10 {
		if err := w.Sample(&profile.Sample{At: moment(time.Duration(i) * time.Millisecond), Thread: threads[0],
			Stack: stacks[0], Wall: true, Span: time.Millisecond, NoState: true}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(moment(time.Second)); err != nil {
		t.Fatal(err)
	}
	again := converted(t, open(t, b.Bytes(), recording.Options{}), format.PProf, false)
	for _, data := range [][]byte{b.Bytes(), again} {
		src := open(t, data, recording.Options{})
		for _, f := range []format.Format{format.Speedscope, format.HTML, format.Collapsed} {
			if got := converted(t, src, f, false); bytes.Contains(got, []byte("[running]")) {
				t.Errorf("%v made up a state", f)
			}
		}
		p, err := recording.Sum(src, recording.SumOptions{States: true})
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := output.Collapsed(&text, p); err != nil || strings.Contains(text.String(), "[running]") {
			t.Errorf("%v: %s", err, text.String())
		}
	}
	if types, _ := valuesOf(t, again); !slices.Contains(types, "wall/nanoseconds") {
		t.Errorf("%q", types)
	}
}
