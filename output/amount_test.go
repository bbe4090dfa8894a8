package output

import "testing"

func TestPercentOf(t *testing.T) {
	for _, c := range []struct {
		n, of int64
		want  string
	}{
		{0, 0, "0 %"}, {0, 5, "0.0 %"}, {1, 3, "33.3 %"}, {9999, 10000, "99.9 %"}, {5, 5, "100 %"}, {1, 100000, "0.001 %"},
		{398, 100, "398 %"}, {10001, 10000, "100 %"}, // goprof's own time as a share of one CPU
	} {
		if got := percentOf(c.n, c.of); got != c.want {
			t.Errorf("%d of %d: %s, and not %s", c.n, c.of, got, c.want)
		}
	}
}
