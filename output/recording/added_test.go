package recording

import (
	"bytes"
	"compress/gzip"
	"testing"

	pb "github.com/google/pprof/profile"

	"goprof/profile"
)

// largeProfile returns a pprof profile whose samples have these values.
func largeProfile(t *testing.T, values ...int64) []byte {
	t.Helper()
	fn := &pb.Function{ID: 1, Name: "shop.Main.main"}
	at := &pb.Location{ID: 1, Line: []pb.Line{{Function: fn}}}
	p := &pb.Profile{SampleType: []*pb.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "seconds"}},
		Function: []*pb.Function{fn}, Location: []*pb.Location{at}}
	for _, v := range values {
		p.Sample = append(p.Sample, &pb.Sample{Location: []*pb.Location{at}, Value: []int64{1, v}})
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := p.WriteUncompressed(z); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestAdded: if the sum of all samples overflows, reading ends with an error that says so. The same holds for a single
// value that is too large in nanoseconds.
func TestAdded(t *testing.T) {
	for name, c := range map[string]struct {
		values []int64
		isBad  bool
	}{
		"a century":             {[]int64{3_000_000_000}, false},
		"three centuries":       {[]int64{3_000_000_000, 3_000_000_000, 3_600_000_000}, true},
		"more than a number is": {[]int64{1 << 62}, true},
	} {
		file, err := Open(Stdin, Options{Stdin: bytes.NewReader(largeProfile(t, c.values...))})
		if err != nil {
			t.Fatal(err)
		}
		for _, stacks := range []Stacks{AllStacks, LaterStacks, NoStacks} {
			err := file.Visit(stacks, func(*profile.Sample) error { return nil })
			if (err != nil) != c.isBad || err != nil && !IsBad(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
