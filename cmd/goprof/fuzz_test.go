//go:build linux

package main

import (
	"testing"
	"time"
)

// FuzzDuration: text that is understood is a time that goes on. Its printed form is understood again.
func FuzzDuration(f *testing.F) {
	for _, text := range []string{"30s", "2.5s", "5m", "30", "0.5", "1h30m", "", "-1", "1e300", "NaN", "0x10", "1_0", "+5",
		"9223372036s", ".5", "1e-9"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var d durationFlag
		if err := d.Set(text); err != nil {
			if time.Duration(d) != 0 {
				t.Fatalf("%q: %v and %v", text, time.Duration(d), err)
			}
			return
		}
		if time.Duration(d) <= 0 {
			t.Fatalf("%q is %v", text, time.Duration(d))
		}
		var again durationFlag
		if err := again.Set(d.String()); err != nil || again != d {
			t.Fatalf("%q is %v, and that is %v (%v)", text, time.Duration(d), time.Duration(again), err)
		}
		if plain, err := time.ParseDuration(text); err == nil && plain != time.Duration(d) {
			t.Fatalf("%q is %v", text, time.Duration(d))
		}
	})
}
