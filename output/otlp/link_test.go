package otlp

import (
	"encoding/hex"
	"testing"

	"goprof/profile"
	"goprof/profile/batch"
	"goprof/testdata/shipped"
)

// TestLinks: samples of a span refer to it, and others to none. Stacks and counts are the same as without spans.
func TestLinks(t *testing.T) {
	samples := shipped.Samples(400, false)
	first := profile.ParseLink("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")
	second := profile.Link{Trace: first.Trace, Span: [8]byte{9}}
	want := map[string]int{}
	for i, s := range samples {
		switch i % 4 {
		case 0:
			s.Link = first
		case 1:
			s.Link = second
		}
		want[s.Link.TraceID()+s.Link.SpanID()]++
	}
	r := encoded(t, samples, batch.GatherOptions{})
	shipped.Same(t, "samples", shipped.OTLP(t, r, "samples"), shipped.Collapsed(t, samples, profile.Samples))
	got := map[string]int{}
	for _, s := range r.ResourceProfiles[0].ScopeProfiles[0].Profiles[0].Samples {
		link := r.Dictionary.LinkTable[s.LinkIndex]
		got[hex.EncodeToString(link.TraceId)+hex.EncodeToString(link.SpanId)] += len(s.TimestampsUnixNano)
	}
	if len(r.Dictionary.LinkTable) != 3 || len(got) != 3 {
		t.Errorf("%d links, %v", len(r.Dictionary.LinkTable), got)
	}
	for id, n := range want {
		if got[id] != n {
			t.Errorf("%q: %d samples, not %d", id, got[id], n)
		}
	}
}
