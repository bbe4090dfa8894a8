package profile

import "testing"

// TestParseLink: ids are read as they were written, and other texts give no Link.
func TestParseLink(t *testing.T) {
	const trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	if l := ParseLink(trace, span); l.TraceID() != trace || l.SpanID() != span || !l.Known() {
		t.Errorf("%+v", l)
	}
	if l := ParseLink("", span); l.TraceID() != "" || l.SpanID() != span {
		t.Errorf("a span alone: %+v", l)
	}
	for _, bad := range [][2]string{{trace, ""}, {"", ""}, {trace, span + "0"}, {trace + "00", span},
		{"x" + trace[1:], span}, {trace, "x" + span[1:]}, {trace, "0000000000000000"}} {
		if l := ParseLink(bad[0], bad[1]); l != (Link{}) || l.TraceID() != "" || l.SpanID() != "" {
			t.Errorf("%q: %+v", bad, l)
		}
	}
}
