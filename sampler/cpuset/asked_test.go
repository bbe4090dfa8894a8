//go:build linux

package cpuset

import "testing"

func TestParseCPUList(t *testing.T) {
	for text, want := range map[string]int{"0": 1, "0-3": 4, "0-1,4,8-9\n": 5, "": 0, "x": 0, "3-1": 0, "0-99999": 0,
		"1,": 1, "1-": 0} {
		if got := parseList([]byte(text)); len(got) != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
