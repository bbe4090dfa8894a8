package destinations

import "testing"

// TestCheck: what is wrong with destinations is said before anything is sent.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{OTLP: []string{"http://a:4318"}, Parca: []string{"grpc://b:7070"}}, ""},
		{Options{OTLP: []string{"http://a", "http://a"}}, "--otlp http://a is given twice"},
		{Options{ParcaHeaders: "x"}, "--parca-headers without --parca"},
		{Options{Relabel: "/no/such/file"}, "cannot read --relabel: open /no/such/file: no such file or directory"},
	} {
		got := ""
		if err := c.o.Check(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v: %q", c.o, got)
		}
	}
}
