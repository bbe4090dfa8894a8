package pprof

import (
	"bytes"
	"slices"
	"testing"

	pb "github.com/google/pprof/profile"

	"goprof/profile"
	"goprof/profile/batch"
	"goprof/profile/redact"
)

// TestLinkLabels: Parca gets both ids. A server that makes series from labels gets only the span's id, which it
// handles.
func TestLinkLabels(t *testing.T) {
	link := profile.ParseLink("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")
	stack := &profile.Stack{Frames: []profile.Frame{{Func: &profile.Func{Name: "a.B.c"}, Kind: profile.C2}}}
	b := &batch.Batch{Samples: []batch.Sum{
		{Thread: profile.Thread{TID: 7, JavaName: "http-1"}, Stack: stack, Link: link, Points: []batch.Point{{Looks: 2}}},
		{Thread: profile.Thread{TID: 7, JavaName: "http-1"}, Stack: stack, Points: []batch.Point{{Looks: 3}}},
	}}
	for name, c := range map[string]struct {
		labels func(*profile.Sample)
		trace  []string
	}{"all": {nil, []string{link.TraceID()}}, "pools": {PoolOnly, nil}} {
		data, err := OfBatch(b, c.labels)
		if err != nil {
			t.Fatal(err)
		}
		p, err := pb.ParseData(data)
		if err != nil || len(p.Sample) != 2 {
			t.Fatalf("%s: %v, %d samples", name, err, len(p.Sample))
		}
		l := p.Sample[0].Label
		if !slices.Equal(l["trace_id"], c.trace) || !slices.Equal(l["span_id"], []string{link.SpanID()}) {
			t.Errorf("%s: %v", name, l)
		}
		if l := p.Sample[1].Label; l["trace_id"] != nil || l["span_id"] != nil {
			t.Errorf("%s: %v of a sample without a span", name, l)
		}
		var out bytes.Buffer
		if err := Redact(&out, bytes.NewReader(data), redact.New(redact.Default(), nil)); err != nil {
			t.Fatal(err)
		}
		if p, err = pb.Parse(&out); err != nil || len(p.Sample[0].Label["span_id"])+len(p.Sample[0].Label["trace_id"]) > 0 {
			t.Errorf("redacted: %v %v", p.Sample[0].Label, err)
		}
	}
}
