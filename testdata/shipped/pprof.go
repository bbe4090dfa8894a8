package shipped

import (
	"slices"
	"testing"

	pb "github.com/google/pprof/profile"
)

// PProf are the counts of a pprof profile in one of its types: "samples", "cpu", "wall".
func PProf(t testing.TB, data []byte, sampleType string) Counts {
	t.Helper()
	p, err := pb.ParseData(data)
	if err == nil {
		err = p.CheckValid()
	}
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(p.SampleType, func(v *pb.ValueType) bool { return v.Type == sampleType })
	if at < 0 {
		t.Fatalf("no %s in %v", sampleType, p.SampleType)
	}
	counts := make(Counts)
	for _, s := range p.Sample {
		var names []string
		for _, l := range s.Location {
			for _, line := range l.Line {
				names = append(names, line.Function.Name)
			}
		}
		counts.Add(names, s.Value[at])
	}
	return counts
}
