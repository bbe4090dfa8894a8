package pprof

import (
	"bytes"
	"testing"

	pb "github.com/google/pprof/profile"

	"goprof/profile/redact"
)

// TestRedactLabels: none of an application's own labels stay, not even numbers.
func TestRedactLabels(t *testing.T) {
	f := &pb.Function{ID: 1, Name: "com.qxzz.A.b", SystemName: "com.qxzz.A.b", Filename: "qxzz.java"}
	m := &pb.Mapping{ID: 1, Start: 1, Limit: 9, File: "/opt/qxzz/libqxzz.so", BuildID: "qxzz-1"}
	l := &pb.Location{ID: 1, Mapping: m, Line: []pb.Line{{Function: f, Line: 3}}}
	p := &pb.Profile{SampleType: []*pb.ValueType{{Type: "samples", Unit: "count"}}, Function: []*pb.Function{f},
		Location: []*pb.Location{l}, Mapping: []*pb.Mapping{m}, DocURL: "https://qxzz.example/1", Comments: []string{"qxzz"},
		KeepFrames: "qxzz", DropFrames: "qxzz",
		Sample: []*pb.Sample{{Value: []int64{1}, Location: []*pb.Location{l},
			Label: map[string][]string{"thread": {"qxzz-worker-3"}, "state": {"parked"}, "qxzz": {"8675309"},
				"customer": {"8675309"}},
			NumLabel: map[string][]int64{"tid": {77}, "bytes": {4096}, "customer": {8675309}},
			NumUnit:  map[string][]string{"bytes": {"bytes"}, "customer": {"qxzz"}}}}}
	var in, out bytes.Buffer
	if err := p.Write(&in); err != nil {
		t.Fatal(err)
	}
	if err := Redact(&out, &in, redact.New(redact.Default(), []byte("the key of this test"))); err != nil {
		t.Fatal(err)
	}
	got, err := pb.ParseData(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	text := got.String()
	for _, secret := range []string{"qxzz", "8675309"} {
		if bytes.Contains(bytes.ToLower([]byte(text)), []byte(secret)) {
			t.Errorf("%q is left:\n%s", secret, text)
		}
	}
	s := got.Sample[0]
	if s.NumLabel["tid"][0] != 77 || s.NumLabel["bytes"][0] != 4096 || s.Label["state"][0] != "parked" ||
		len(s.Label) != 4 {
		t.Errorf("labels that say nothing are gone:\n%s", text)
	}
}
