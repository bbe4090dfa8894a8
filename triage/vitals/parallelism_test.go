//go:build linux

package vitals

import "testing"

func TestParallelism(t *testing.T) {
	const key = "-Djdk.virtualThreadScheduler.parallelism="
	for name, c := range map[string]struct {
		args []string
		want int
		ok   bool
	}{
		"none":              {[]string{"-Xmx1g"}, 0, false},
		"two":               {[]string{key + "2", "-Xint"}, 2, true},
		"the last counts":   {[]string{key + "2", key + "3"}, 3, true},
		"no number":         {[]string{key + "many"}, 0, false},
		"none at all":       {[]string{key + "0"}, 0, false},
		"more than is so":   {[]string{key + "99999999999999999999"}, 0, false},
		"another one's":     {[]string{key[:len(key)-1] + "2=5"}, 0, false},
		"without its value": {[]string{key}, 0, false},
	} {
		if n, ok := parallelism(c.args); ok != c.ok || ok && n != c.want {
			t.Errorf("%s: %d, %v", name, n, ok)
		}
	}
}
